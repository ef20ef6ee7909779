// Drives a Verilated model from arrays: queues in front of input streams, buffers behind output streams.
// ports.h is generated per design: bind() lists the ports, STREAMS the streams by port number.
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "Vtop.h"
#include "verilated.h"

double sc_time_stamp() { return 0; }

namespace {

struct Port {
    uint8_t* at;
    int bytes;
    bool input;
};

struct StreamPorts {
    int valid, ready, payload;  // port numbers, -1 when tied or without bits
    bool input;
};

#include "ports.h"

struct Stream {
    StreamPorts ports;
    int bytes = 0;
    int rate = 256;             // moves when a random byte is below
    uint32_t random = 1;
    bool offering = false;      // input: the head of the queue stands at the port
    bool stalled = false;       // output: offered and not taken on the last edge
    std::vector<uint8_t> data;  // input: the queue; output: what came
    std::vector<uint8_t> held;  // output: payload while stalled
    std::vector<int64_t> stamps;
    int64_t total = 0;          // transfers since reset
    int64_t head = 0;           // input: first beat not transferred
    bool draw() {
        random ^= random << 13, random ^= random >> 17, random ^= random << 5;
        return static_cast<int>(random >> 8 & 255) < rate;
    }
};

struct Sim {
    std::unique_ptr<VerilatedContext> context{new VerilatedContext};
    std::unique_ptr<Vtop> top;
    std::vector<Port> ports;
    std::vector<Stream> streams;
    int64_t cycle = 0;

    explicit Sim(uint32_t seed) {
        context->randReset(2);
        context->randSeed(static_cast<int>(seed & 0x7ffffffe) + 1);
        top.reset(new Vtop{context.get(), "top"});
        bind(top.get(), ports);
        // Inputs start random like all else; the first edge must be a rising one.
        for (const auto& port : ports) {
            if (port.input) memset(port.at, 0, port.bytes);
        }
        set_clock(top.get(), 0);
        set_reset(top.get(), 0);
        top->eval();
        for (const auto& p : STREAMS) {
            Stream s;
            s.ports = p;
            s.bytes = p.payload < 0 ? 0 : ports[p.payload].bytes;
            s.random = (seed + 1) * 2654435761u + static_cast<uint32_t>(streams.size()) * 40503u;
            if (!s.random) s.random = 1;
            s.held.resize(s.bytes);
            streams.push_back(std::move(s));
        }
    }

    bool bit(int port) const { return port < 0 || *ports[port].at; }
    void bit(int port, bool value) {
        if (port >= 0) *ports[port].at = value;
    }

    void edge() {
        set_clock(top.get(), 1);
        top->eval();
        set_clock(top.get(), 0);
        ++cycle;
    }

    void offer(Stream& s) {
        if (!s.offering && s.head < static_cast<int64_t>(s.data.size()) / (s.bytes ? s.bytes : 1) && s.draw()) {
            s.offering = true;
            if (s.bytes) memcpy(ports[s.ports.payload].at, &s.data[s.head * s.bytes], s.bytes);
        }
        bit(s.ports.valid, s.offering);
    }

    // One clock cycle; returns the number of the output stream that broke rule 2, or -1.
    int step() {
        int broken = -1;
        for (auto& s : streams) {
            if (s.ports.input) offer(s);
            else bit(s.ports.ready, s.draw());
        }
        top->eval();
        for (auto& s : streams) {
            const bool valid = bit(s.ports.valid), ready = bit(s.ports.ready);
            if (s.ports.input) {
                if (!s.offering || !ready) continue;
                s.offering = false;
                ++s.head;
            } else {
                const uint8_t* now = s.bytes ? ports[s.ports.payload].at : nullptr;
                if (s.stalled && (!valid || (s.bytes && memcmp(now, s.held.data(), s.bytes)))) {
                    broken = static_cast<int>(&s - streams.data());
                }
                s.stalled = valid && !ready;
                if (s.stalled && s.bytes) memcpy(s.held.data(), now, s.bytes);
                if (!valid || !ready) continue;
                if (s.bytes) s.data.insert(s.data.end(), now, now + s.bytes);
            }
            ++s.total;
            s.stamps.push_back(cycle);
        }
        edge();
        return broken;
    }
};

}  // namespace

extern "C" {

void* sim_new(uint32_t seed) { return new Sim(seed); }
void sim_free(void* p) { delete static_cast<Sim*>(p); }
int64_t sim_cycle(void* p) { return static_cast<Sim*>(p)->cycle; }
int64_t sim_total(void* p, int stream) { return static_cast<Sim*>(p)->streams[stream].total; }
int64_t sim_stamps(void* p, int stream) {
    return static_cast<int64_t>(static_cast<Sim*>(p)->streams[stream].stamps.size());
}
void sim_rate(void* p, int stream, int rate) { static_cast<Sim*>(p)->streams[stream].rate = rate; }

void sim_set(void* p, int port, const uint8_t* value) {
    auto& at = static_cast<Sim*>(p)->ports[port];
    memcpy(at.at, value, at.bytes);
}

void sim_get(void* p, int port, uint8_t* value) {
    auto* sim = static_cast<Sim*>(p);
    sim->top->eval();
    memcpy(value, sim->ports[port].at, sim->ports[port].bytes);
}

void sim_push(void* p, int stream, const uint8_t* beats, int64_t count) {
    auto& s = static_cast<Sim*>(p)->streams[stream];
    if (s.head) {
        s.data.erase(s.data.begin(), s.data.begin() + s.head * s.bytes);
        s.head = 0;
    }
    s.data.insert(s.data.end(), beats, beats + count * s.bytes);
}

void sim_take(void* p, int stream, uint8_t* beats, int64_t* stamps, int64_t count) {
    auto& s = static_cast<Sim*>(p)->streams[stream];
    memcpy(stamps, s.stamps.data(), count * sizeof(int64_t));
    s.stamps.erase(s.stamps.begin(), s.stamps.begin() + count);
    if (s.ports.input) return;
    memcpy(beats, s.data.data(), count * s.bytes);
    s.data.erase(s.data.begin(), s.data.begin() + count * s.bytes);
}

void sim_reset(void* p, int cycles) {
    auto* sim = static_cast<Sim*>(p);
    for (auto& s : sim->streams) {
        s.data.clear();
        s.stamps.clear();
        s.head = s.total = 0;
        s.offering = s.stalled = false;
        if (s.ports.input) sim->bit(s.ports.valid, false);
    }
    set_reset(sim->top.get(), 1);
    for (int i = 0; i < cycles; ++i) {
        sim->top->eval();
        sim->edge();
    }
    set_reset(sim->top.get(), 0);
}

// Runs until every stream has its target of transfers since reset (-1: none). 0 done, 1 out of cycles,
// 2 + n: output stream n broke rule 2.
int sim_run(void* p, const int64_t* targets, int64_t max_cycles) {
    auto* sim = static_cast<Sim*>(p);
    const size_t count = sim->streams.size();
    for (int64_t i = 0;; ++i) {
        bool done = true;
        for (size_t k = 0; k < count; ++k) done &= sim->streams[k].total >= targets[k];
        if (done) return 0;
        if (i == max_cycles) return 1;
        const int broken = sim->step();
        if (broken >= 0) return 2 + broken;
    }
}

int sim_steps(void* p, int64_t cycles) {
    auto* sim = static_cast<Sim*>(p);
    for (int64_t i = 0; i < cycles; ++i) {
        const int broken = sim->step();
        if (broken >= 0) return 2 + broken;
    }
    return 0;
}

// Plain ports: each cycle takes one row of every input array and samples every output before the edge.
void sim_play(void* p, int64_t cycles, int inputs, const int* in_ports, const uint8_t* const* in_rows,
              int outputs, const int* out_ports, uint8_t* const* out_rows) {
    auto* sim = static_cast<Sim*>(p);
    for (int64_t i = 0; i < cycles; ++i) {
        for (int k = 0; k < inputs; ++k) {
            const auto& port = sim->ports[in_ports[k]];
            memcpy(port.at, in_rows[k] + i * port.bytes, port.bytes);
        }
        sim->top->eval();
        for (int k = 0; k < outputs; ++k) {
            const auto& port = sim->ports[out_ports[k]];
            memcpy(out_rows[k] + i * port.bytes, port.at, port.bytes);
        }
        sim->edge();
    }
}
}
