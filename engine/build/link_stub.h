/* `extern __shared__ T name[];` compiles to an undefined thread-local symbol. The stub defines each of them as another
   name of one array of SIMT_SHARED_MAX bytes, simt_dynamic_shared, that the runtime knows. */
#ifndef BUILD_LINK_STUB_H
#define BUILD_LINK_STUB_H

#include "engine/base/err.h"

/* Reads the symbol table of the object file (ELF64, of this machine) and writes the stub in assembly, to be assembled
   with `gcc -c` and linked with the object; every debuggee needs one, with or without such symbols. On failure nothing
   is left at out_asm_path: ERR_BUILD where the object is not one, ERR_SYSTEM where a file cannot be read or written.
 */
int link_stub_write(const char *object_path, const char *out_asm_path, struct err *err);

/* The same of C++ functions that the object calls and does not have: such ones that call asc_not_linked()
   (probes/run.h) with their mangled name. Each is a file of its own, folder/missing0.s and so on: from an archive the
   linker takes whole objects, and what a shared library has must stay the library's. The archive is for the end of the
   link, behind every library that may have them. folder/missing.s.args and missing.o.args name the files, and what they
   are assembled to, for a tool that reads @FILE. How many, or -1. */
int link_stub_missing(const char *object_path, const char *folder, struct err *err);

/* Changes an object that is compiled with -fdata-sections: behind each of its shared arrays there is room that belongs
   to nobody, so that checks see an index that is off by less. */
#define LINK_STUB_ROOM_BYTES 256u
int link_stub_spread(const char *object_path, struct err *err);

#endif
