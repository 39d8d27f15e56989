/* Forced in front of a .cu that nvcc compiles, behind its own headers, which have the C library's. exit() in host code
   leaves it as an exception does, so that destructors run and locks are given back; the library's is declared to throw
   nothing. On the CPU simt_device.h does the same. */
#if !defined(ASC_EXIT_H) && defined(__cplusplus)
#define ASC_EXIT_H

#include <stdlib.h>

struct asc_left {
    const char *why;
};
extern "C" bool debuggee_may_leave(void); /* engine/child/debuggee */
extern "C" const char *asc_exit_sentence(int status);

[[noreturn]] inline void asc_exit(int status)
{
    if (debuggee_may_leave())
        throw asc_left{asc_exit_sentence(status)};
    exit(status);
}
namespace std
{
using ::asc_exit;
}
#define exit(status) asc_exit(status)

#endif
