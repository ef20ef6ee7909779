"""Everything that is written to disk for one design."""

from gen.products.folder import FileSet, replace_folder
from gen.products.render import write_products

__all__ = ["FileSet", "replace_folder", "write_products"]
