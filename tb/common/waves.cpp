// The main program of a simulator that records waves: cocotb's own, with a recorder that keeps what was asked for.
//
// +waves_scope+NAME and +waves_depth+N choose signals; a bench opens the window of time through waves_window.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "verilated.h"
#if VM_TRACE_FST
#include <verilated_fst_c.h>
using Recorder = VerilatedFstC;
#else
#include <verilated_vcd_c.h>
using Recorder = VerilatedVcdC;
#endif

namespace {
bool limited = false;
uint64_t first = 0, last = 0;

std::string option(const char* name) {
    const std::string found = Verilated::threadContextp()->commandArgsPlusMatch(name);
    return found.empty() ? found : found.substr(1 + std::string(name).size());
}
}  // namespace

// Record times from `from` up to and without `to` only; with to = 0 nothing, until the next call.
extern "C" void waves_window(uint64_t from, uint64_t to) {
    limited = true;
    first = from;
    last = to;
}

class WindowedRecorder final : public Recorder {
public:
    void open(const char* file) {
        const std::string scope = option("waves_scope+"), depth = option("waves_depth+");
        if (!scope.empty()) Recorder::dumpvars(depth.empty() ? 1 << 20 : std::atoi(depth.c_str()), scope);
        if (!option("waves_later").empty()) waves_window(0, 0);
        Recorder::open(file);
    }
    void dump(uint64_t time) {
        if (!limited || (first <= time && time < last)) Recorder::dump(time);
    }
};

#define VerilatedFstC WindowedRecorder
#define VerilatedVcdC WindowedRecorder
#include "verilator.cpp"
