#include "engine/simt/traps.h"

#include "engine/simt/allocated.h"
#include "engine/simt/fiber.h"
#include "engine/simt/launch.h"
#include "engine/simt/report.h"

#include <assert.h>
#include <fenv.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define EXIT_FATAL 3
#define EXIT_ASSERT 4
/* A kernel full of NaN traps at every line again after every wait; beyond this many repeats a worker stops looking. */
#define STALE_MAX 10000u
#define PCS_MAX 1024u

#if defined(__x86_64__)
#define TRAPS (FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW)
#define MXCSR_FLAGS 0x003Fu
#define MXCSR_MASKS 0x1F80u
#define X87_MASKS 0x003Fu
#define X87_FLAGS 0x80BFu /* the exceptions, their summary, busy */

void traps_on(void)
{
    feclearexcept(FE_ALL_EXCEPT);
    feenableexcept(TRAPS);
}

void traps_off(void)
{
    fedisableexcept(FE_ALL_EXCEPT);
    feclearexcept(FE_ALL_EXCEPT);
}

int traps_pause(void)
{
    return fedisableexcept(FE_ALL_EXCEPT);
}

void traps_resume(int paused)
{
    if (paused > 0) {
        feclearexcept(FE_ALL_EXCEPT);
        feenableexcept(paused);
    }
}
#else /* the others have no traps, or need not have them */
void traps_on(void) {}

void traps_off(void) {}

int traps_pause(void)
{
    return 0;
}

void traps_resume(int paused)
{
    (void)paused;
}
#endif

void traps_rearm(struct worker *w)
{
    w->masked = false;
    if (w->stale < STALE_MAX)
        traps_on();
}

static uintptr_t context_pc(const ucontext_t *context)
{
#if defined(__x86_64__)
    return (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
#else
    return (uintptr_t)context->uc_mcontext.pc;
#endif
}

#if defined(__x86_64__)
static uintptr_t pcs[PCS_MAX]; /* instructions that have trapped in this launch: pc * 4 + kind; 0: free */

/* Looking up a line takes microseconds. The table only saves time; a lost race between workers costs one more look.
   kind: of what traps there, 0 to 3. */
static bool pc_is_new(uintptr_t pc, unsigned kind)
{
    const uintptr_t key = pc * 4 + kind;
    for (unsigned i = 0; i < PCS_MAX; i++) {
        const uintptr_t have = __atomic_load_n(&pcs[(key + i) % PCS_MAX], __ATOMIC_RELAXED);
        if (have == key)
            return false;
        if (!have) {
            __atomic_store_n(&pcs[(key + i) % PCS_MAX], key, __ATOMIC_RELAXED);
            return true;
        }
    }
    return false;
}

static void on_float(int code, ucontext_t *context)
{
    struct worker *w = simt_tls.worker;
    /* Go on with the instruction, now untrapped, and look again after the next wait. */
    struct _libc_fpstate *unit = context->uc_mcontext.fpregs;
    unit->mxcsr = (unit->mxcsr | MXCSR_MASKS) & ~MXCSR_FLAGS;
    unit->cwd |= X87_MASKS; /* long double */
    unit->swd &= (uint16_t)~X87_FLAGS;
    w->masked = true;
    if (!pc_is_new(context_pc(context), code == FPE_FLTINV ? 1 : code == FPE_FLTDIV ? 2 : 3)) {
        w->stale++;
        return;
    }
    simt_tls.fault = context_pc(context);
    const bool multiplies = w->multiplying && w->wgmmas[simt_tls.self - w->fiber].n > 0;
    if (code == FPE_FLTINV && multiplies)
        report_raise(EVENT_FP_INVALID, false, NULL, 0, NULL,
                     "invalid operation: it reads a register of a wgmma that is not waited for, or is one by itself "
                     "(0/0, inf - inf, 0 * inf, a NaN that is compared, or read from uninitialized memory)");
    else if (code == FPE_FLTINV)
        report_raise(EVENT_FP_INVALID, false, NULL, 0, NULL,
                     "invalid operation (0/0, inf - inf, 0 * inf, or a NaN that is compared, or read from "
                     "uninitialized memory)");
    else if (code == FPE_FLTDIV)
        report_raise(EVENT_FP_DIVIDE, false, NULL, 0, NULL, "division by zero: the result is infinite");
    else
        report_raise(EVENT_FP_OVERFLOW, false, NULL, 0, NULL, "overflow: the result is infinite");
    simt_tls.fault = 0;
}

static bool is_write(const ucontext_t *context)
{
    return context->uc_mcontext.gregs[REG_ERR] & 2; /* page-fault error code, bit 1 (SDM 3, 4.7) */
}

static const char *access_word(const ucontext_t *context)
{
    return is_write(context) ? "write to" : "read of";
}
#else
static const char *access_word(const ucontext_t *context)
{
    (void)context;
    return "access to";
}
#endif

static bool in_guard(const struct worker *w, uintptr_t address)
{
    const uintptr_t begin = (uintptr_t)w->stacks + (uintptr_t)(simt_tls.self - w->fiber) * FIBER_BYTES;
    return address - begin < FIBER_GUARD_BYTES;
}

/* An address within this distance of an array is a wrong index into it rather than a wild pointer: as far as its guard
   zone goes (arrays.c). */
#define NEAR_BYTES ((uintptr_t)1 << 34)

/* How far an address lies outside a region; 0: in it. */
static uintptr_t distance_to(const struct simt_region *region, uintptr_t address)
{
    const uintptr_t begin = (uintptr_t)region->begin, end = begin + region->bytes;
    return address < begin ? begin - address : address >= end ? address - end + 1 : 0;
}

/* The array that is nearest; NULL: there are none. */
static const struct simt_region *nearest_to(uintptr_t address)
{
    const struct simt_options *options = launch_options();
    const struct simt_region *nearest = NULL;
    for (int i = 0; i < options->n_regions; i++) {
        const struct simt_region *region = &options->regions[i];
        if (region->bytes && (!nearest || distance_to(region, address) < distance_to(nearest, address)))
            nearest = region;
    }
    for (const struct simt_region *region = allocated_after(NULL); region; region = allocated_after(region))
        if (!nearest || distance_to(region, address) < distance_to(nearest, address))
            nearest = region;
    return nearest;
}

/* "write to address 52 bytes behind the end of O", of the array that is nearest; false where none is near. */
static bool report_near_array(uintptr_t address, const ucontext_t *context, const char *then)
{
    const struct simt_region *nearest = nearest_to(address);
    const uintptr_t distance = nearest ? distance_to(nearest, address) : UINTPTR_MAX;
    if (distance > NEAR_BYTES)
        return false;
    if (distance == 0 && nearest->host)
        report_raise(EVENT_ADDRESS, true, NULL, 0, NULL, "%s %s, which a GPU cannot reach%s", access_word(context),
                     nearest->name, then);
    else if (distance == 0)
        report_raise(EVENT_ADDRESS, true, NULL, 0, NULL, "write to %s, which is an input%s", nearest->name, then);
    else if (address < (uintptr_t)nearest->begin)
        report_raise(EVENT_ADDRESS, true, NULL, 0, NULL, "%s address %lu bytes before %s%s", access_word(context),
                     (unsigned long)distance, nearest->name, then);
    else
        report_raise(EVENT_ADDRESS, true, NULL, 0, NULL, "%s address %lu bytes past the end of %s%s",
                     access_word(context), (unsigned long)(distance - 1), nearest->name, then);
    return true;
}

static void report_address(int signal, const siginfo_t *info, const ucontext_t *context, bool dropped)
{
    const uintptr_t address = (uintptr_t)info->si_addr;
    if (in_guard(simt_tls.worker, address))
        report_raise(EVENT_ADDRESS, true, NULL, 0, NULL,
                     "stack overflow: the local variables of one thread need more than %zu KB",
                     FIBER_STACK_BYTES / 1024);
    else if (signal == SIGSEGV && info->si_code == SI_KERNEL)
        report_raise(EVENT_ADDRESS, true, NULL, 0, NULL, "invalid access through a pointer that is not an address");
    else if (!report_near_array(address, context, dropped ? " (dropped; the checked run continues)" : ""))
        report_raise(EVENT_ADDRESS, true, NULL, 0, NULL, "invalid %s address 0x%lx%s", access_word(context),
                     (unsigned long)address, address < 4096 ? " (a null pointer)" : "");
}

#if defined(__x86_64__)
#define EFLAGS_TRAP 0x100 /* a trap behind the next instruction (SDM 1, 3.4.3.3) */
#define STEP_PAGES 4u     /* one access may cross the end of a page */
#define PAGE 4096u
#define DROPPED_MAX 65536u /* each costs two signals */

/* A checked run goes on behind a store into the room around an array, or into an input: what threads do to each other
   afterwards is to be told too. Its pages are opened for this one instruction and then are as they were. */
static struct {
    _Atomic(const struct worker *) by; /* who steps, one at a time; the rest is its own */
    unsigned n;
    struct {
        void *at;
        int protection;
        unsigned char bytes[PAGE]; /* that stood there */
    } page[STEP_PAGES];
    unsigned dropped; /* in this launch */
} step;

static void end_step(ucontext_t *context)
{
    context->uc_mcontext.gregs[REG_EFL] &= ~EFLAGS_TRAP;
    while (step.n) {
        void *const at = step.page[--step.n].at;
        const int protection = step.page[step.n].protection;
        do { /* another worker may have written before the page was closed */
            mprotect(at, PAGE, PROT_READ | PROT_WRITE);
            memcpy(at, step.page[step.n].bytes, PAGE);
            mprotect(at, PAGE, protection);
        } while (protection != PROT_NONE && memcmp(at, step.page[step.n].bytes, PAGE) != 0);
        if (protection == PROT_NONE)
            madvise(at, PAGE, MADV_DONTNEED);
    }
    atomic_store(&step.by, NULL);
}

static void on_step(int signal, siginfo_t *info, void *context)
{
    (void)info;
    if (simt_tls.worker && atomic_load(&step.by) == simt_tls.worker) {
        end_step(context);
    } else { /* a breakpoint */
        const struct sigaction usual = {.sa_handler = SIG_DFL};
        sigaction(signal, &usual, NULL);
        raise(signal);
    }
}

/* The store may be made once more, into pages that forget it. */
static bool drop_store(uintptr_t address, ucontext_t *context)
{
    const struct worker *const w = simt_tls.worker;
    const struct simt_region *region = nearest_to(address);
    const uintptr_t page = address / PAGE * PAGE;
    if (!w->checks || !region || region->host || !is_write(context))
        return false;
    const uintptr_t begin = (uintptr_t)region->begin / PAGE * PAGE,
                    end = ((uintptr_t)region->begin + region->bytes + PAGE - 1) / PAGE * PAGE;
    const bool within = page >= begin && page < end;
    if ((within && region->output) || page < begin - region->guard_bytes || page >= end + region->guard_bytes)
        return false;
    for (const struct worker *by = NULL; by != w && !atomic_compare_exchange_weak(&step.by, &by, w);)
        if (by != w) {
            by = NULL;
            sched_yield();
        }
    if (step.n == STEP_PAGES || step.dropped++ == DROPPED_MAX || sysconf(_SC_PAGESIZE) != PAGE)
        return false;
    if (within) /* before it is open: another worker may write as soon as it is */
        memcpy(step.page[step.n].bytes, (void *)page, PAGE);
    if (mprotect((void *)page, PAGE, PROT_READ | PROT_WRITE) != 0)
        return false;
    if (!within)
        memcpy(step.page[step.n].bytes, (void *)page, PAGE);
    step.page[step.n].at = (void *)page;
    step.page[step.n++].protection = within ? PROT_READ : PROT_NONE;
    context->uc_mcontext.gregs[REG_EFL] |= EFLAGS_TRAP;
    return true;
}

/* The same place is told once. */
static bool is_told(const ucontext_t *context)
{
    return atomic_load(&step.by) == simt_tls.worker || (!pc_is_new(context_pc(context), 0) && report_error());
}
#else
static bool drop_store(uintptr_t address, ucontext_t *context)
{
    (void)address;
    (void)context;
    return false;
}

static bool is_told(const ucontext_t *context)
{
    (void)context;
    return false;
}
#endif

static void on_signal(int signal, siginfo_t *info, void *ctx)
{
    ucontext_t *context = ctx;
    if (!simt_tls.worker || !simt_tls.self) { /* not a kernel's doing: die of it as usual */
        struct sigaction usual = {.sa_handler = SIG_DFL};
        sigaction(signal, &usual, NULL);
        return;
    }
    if (simt_tls.reporting)
        _exit(EXIT_FATAL);
    if (signal == SIGFPE && info->si_code != FPE_INTDIV) {
#if defined(__x86_64__)
        on_float(info->si_code, context);
        return;
#endif
    }
    simt_tls.fault = context_pc(context);
    const bool told = is_told(context);
    const bool dropped =
        signal == SIGSEGV && info->si_code == SEGV_ACCERR && drop_store((uintptr_t)info->si_addr, context);
    if (signal == SIGFPE)
        report_raise(EVENT_TRAP, true, NULL, 0, NULL, "integer division by zero: undefined on a GPU");
    else if (signal == SIGILL)
        report_raise(EVENT_TRAP, true, NULL, 0, NULL,
                     "illegal instruction at 0x%lx: the compiler saw undefined behavior here",
                     (unsigned long)context_pc(context));
    else if (!dropped || !told)
        report_address(signal, info, context, dropped);
    simt_tls.fault = 0;
    if (dropped)
        return;
    if (simt_tls.worker->checks) /* what other blocks do to each other is told too, whichever comes first */
        launch_drain();
    _exit(EXIT_FATAL);
}

uintptr_t traps_pc(const void *context)
{
    return context_pc(context);
}

void traps_begin_launch(void)
{
    stands_begin();
#if defined(__x86_64__)
    memset(pcs, 0, sizeof pcs);
    step.dropped = 0;
#endif
    locate_init();
    static const int signals[] = {SIGFPE, SIGSEGV, SIGBUS, SIGILL};
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    sigemptyset(&action.sa_mask);
#if defined(__x86_64__)
    struct sigaction stepped = action;
    stepped.sa_sigaction = on_step;
    sigaction(SIGTRAP, &stepped, NULL);
#endif
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        sigaction(signals[i], &action, NULL);
}

void traps_end(void)
{
    fflush(stdout);
    _exit(EXIT_FATAL);
}

void simt_trap(const char *file, int line)
{
    if (!simt_tls.self)
        abort();
    report_raise(EVENT_TRAP, true, file, line, NULL, "__trap()");
    traps_end();
}

void simt_gpu_only(const char *what, const char *file, int line)
{
    report_raise(EVENT_GPU_ONLY, true, file, line, NULL, "%s", what);
    traps_end();
}

void simt_not_linked(const char *sentence)
{
    if (!simt_tls.self) /* host code: it declines */
        return;
    report_raise(EVENT_TRAP, true, NULL, 0, NULL, "%s", sentence);
    traps_end();
}

/* glibc's assert() ends here; the program's definition wins over the library's. */
/* NOLINTNEXTLINE(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */
void __assert_fail(const char *expression, const char *file, unsigned line, const char *function)
{
    if (!simt_tls.self) {
        fprintf(stderr, "%s:%u: %s: assert(%s) failed\n", file, line, function, expression);
        abort();
    }
    report_raise(EVENT_ASSERT, true, file, (int)line, NULL, "assert(%s) failed in %s", expression, function);
    fflush(stdout);
    _exit(EXIT_ASSERT);
}
