/* A correct attention kernel, one thread a row, that misbehaves as the environment variable EVIL says: what a process
   can do to the one that started it. tests/faults/test_evil.py has the list with what must be said of each. CPU alone.
 */
#include "attnscope.h"

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdexcept>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace
{

constexpr int TILE = 8, D = 16, WIRE = 3;

bool evil(const char *name)
{
    const char *wanted = getenv("EVIL");
    return wanted && strcmp(wanted, name) == 0;
}

[[noreturn]] void wait_for_ever()
{
    for (;;)
        pause();
}

[[noreturn]] void spin()
{
    for (volatile int n = 0;; n = n + 1)
        ;
}

int overflow(volatile int depth)
{
    volatile char frame[65536];
    frame[0] = static_cast<char>(depth);
    return overflow(depth + 1) + frame[0];
}

void say(const char *text)
{
    for (size_t left = strlen(text); left;) {
        const ssize_t n = write(WIRE, text, left);
        if (n <= 0)
            return;
        text += n;
        left -= static_cast<size_t>(n);
    }
}

/* Fills every mapping that is shared with attnscope. */
void scribble(int byte)
{
    char line[512], rights[8];
    unsigned long first, last;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx %7s", &first, &last, rights) == 3 && strcmp(rights, "rw-s") == 0)
            memset(reinterpret_cast<void *>(first), byte, last - first);
    if (maps)
        fclose(maps);
}

void *scribble_later(void *)
{
    for (int i = 0; i < 200; i++) {
        usleep(1000);
        scribble(i);
    }
    return nullptr;
}

void *wait_thread(void *)
{
    wait_for_ever();
}

void fork_some(int n, bool leave_group)
{
    for (int i = 0; i < n; i++) {
        const pid_t child = fork();
        if (child == 0) {
            if (leave_group) {
                setsid();
                if (fork() != 0)
                    _exit(0);
            }
            wait_for_ever();
        }
        if (leave_group && child > 0)
            waitpid(child, NULL, 0); // else it may be counted as well
    }
}

void print_megabytes(int n)
{
    static char block[1 << 20];
    memset(block, 'x', sizeof block);
    for (int i = 0; i < n; i++)
        fwrite(block, 1, sizeof block, stdout);
}

/* What is done on the host, ahead of the launch. */
void misbehave_on_host()
{
    if (evil("host-spins"))
        spin();
    if (evil("host-overflows"))
        overflow(0);
    if (evil("host-exits"))
        exit(0);
    if (evil("host-aborts"))
        abort();
    if (evil("host-null"))
        *static_cast<volatile int *>(nullptr) = 1;
    if (evil("host-throws"))
        throw std::runtime_error("boo");
    if (evil("host-killed"))
        kill(getpid(), SIGKILL);
    if (evil("host-stops"))
        raise(SIGSTOP);
    if (evil("host-double-free")) {
        char *volatile twice = static_cast<char *>(malloc(16));
        free(twice);
        free(twice);
    }
    if (evil("closes-streams"))
        for (int fd = 0; fd < 3; fd++)
            close(fd);
    if (evil("closes-wire"))
        close(WIRE);
    if (evil("shuts-wire-down")) {
        shutdown(WIRE, SHUT_RDWR);
        wait_for_ever();
    }
    if (evil("changes-folder"))
        (void)!chdir("/");
    if (evil("ignores-signals")) {
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_BLOCK, &all, nullptr);
        spin();
    }
    if (evil("signals-its-parent"))
        kill(getppid(), SIGCHLD);
    if (evil("signals-its-group"))
        kill(0, SIGTERM);
    if (evil("takes-all-files"))
        while (open("/dev/null", O_RDONLY) >= 0)
            ;
    if (evil("limits-its-memory")) {
        const rlimit limit = {1u << 28, 1u << 28};
        setrlimit(RLIMIT_AS, &limit);
    }
    if (evil("starts-threads")) {
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, 65536);
        pthread_t thread;
        for (int i = 0; i < 500 && pthread_create(&thread, &attributes, wait_thread, nullptr) == 0; i++)
            ;
    }
    if (evil("scribbles"))
        scribble(0xA5);
    if (evil("scribbles-later")) {
        pthread_t thread;
        pthread_create(&thread, nullptr, scribble_later, nullptr);
    }
    if (evil("forks"))
        fork_some(20, false);
    if (evil("forks-daemons"))
        fork_some(5, true);
    if (evil("forks-and-hangs")) {
        fork_some(5, true);
        spin();
    }
    if (evil("prints-lines"))
        for (int i = 0; i < 100000; i++)
            printf("line %d of rubbish \033[31m\033]0;title\007\n", i);
    if (evil("prints-300-megabytes"))
        print_megabytes(300);
    if (evil("prints-for-ever"))
        for (;;)
            print_megabytes(1);
    if (evil("prints-no-newline"))
        fprintf(stderr, "no newline at the end");
    if (evil("says-garbage"))
        say("garbage garbage\n");
    if (evil("says-brackets")) {
        static char deep[40000];
        memset(deep, '[', sizeof deep - 2);
        deep[sizeof deep - 2] = '\n';
        say(deep);
    }
    if (evil("says-a-long-line")) {
        static char line[1 << 20];
        memset(line, 'a', sizeof line - 1);
        for (int i = 0; i < 64; i++)
            say(line);
    }
    if (evil("says-many-events"))
        for (int i = 0; i < 200000; i++)
            say("{\"type\":\"event\",\"kind\":\"race\",\"text\":\"t\",\"file\":\"f\",\"line\":1}\n");
    if (evil("says-a-result"))
        for (int id = 1; id < 20; id++) {
            char line[160];
            snprintf(line, sizeof line,
                     "{\"type\":\"result\",\"id\":%d,\"status\":\"complete\",\"seconds\":1e308,\"workers\":-5,"
                     "\"text\":\"x\"}\n",
                     id);
            say(line);
        }
    if (evil("says-escapes"))
        say("{\"type\":\"event\",\"kind\":\"\\u001b[2J\",\"text\":\"\\u001b]0;title\\u0007 \\u202e\",\"file\":\"/etc/"
            "passwd\",\"line\":1,\"batch\":99999999,\"head\":77,\"q_tile\":1000000,\"kv_tile\":5}\n");
    if (evil("says-strange-progress"))
        for (int i = 0; i < 1000; i++)
            say("{\"type\":\"progress\",\"id\":2,\"done\":-1e300,\"total\":1e-300}\n");
}

struct Constructor {
    Constructor()
    {
        if (evil("constructor-exits"))
            exit(0);
        if (evil("constructor-spins"))
            spin();
        if (evil("constructor-prints"))
            puts("hello from a constructor"), fflush(stdout);
        if (evil("constructor-prints-and-exits"))
            puts("no licence found"), fflush(stdout), exit(4);
        if (evil("constructor-says-hello"))
            say("{\"type\":\"hello\",\"abi\":999,\"kernel\":\"x\"}\n");
        if (evil("constructor-says-nothing"))
            say("{}\n\n\n");
    }
    ~Constructor()
    {
        if (evil("destructor-spins"))
            spin();
    }
} constructor;

__device__ void misbehave(int row)
{
    if (row != 3)
        return;
    if (evil("device-spins"))
        spin();
    if (evil("device-overflows"))
        overflow(0);
    if (evil("device-exits"))
        exit(0);
    if (evil("device-quick-exits"))
        quick_exit(7);
    if (evil("device-aborts"))
        abort();
    if (evil("device-null"))
        *static_cast<volatile int *>(nullptr) = 1;
    if (evil("device-jumps"))
        reinterpret_cast<void (*)()>(static_cast<uintptr_t>(0x1234))();
    if (evil("device-throws"))
        throw 5;
    if (evil("device-killed"))
        kill(getpid(), SIGKILL);
    if (evil("device-traps"))
        __builtin_trap();
    if (evil("device-sleeps"))
        sleep(100);
    if (evil("device-forks"))
        fork_some(1, false);
    if (evil("device-scribbles"))
        scribble(0x5A);
    if (evil("device-leaves-its-thread"))
        pthread_exit(nullptr);
    if (evil("device-divides")) {
        volatile int zero = 0;
        zero = 1 / zero;
    }
}

__global__ void attention(asc_problem p, asc_strides qs, asc_strides ks)
{
    const int row = threadIdx.x, batch = blockIdx.z, head = blockIdx.y, query = blockIdx.x * TILE + row;
    const float *q = static_cast<const float *>(p.q) + batch * qs.batch + head * qs.head + query * qs.row;
    const float *k = static_cast<const float *>(p.k) + batch * ks.batch + head * ks.head;
    const float *v = static_cast<const float *>(p.v) + batch * ks.batch + head * ks.head;
    ASC_AT(batch, head, blockIdx.x);
    if (blockIdx.x == 1)
        misbehave(row);
    if (query >= p.q_len)
        return;
    float m = -INFINITY, l = 0, u[D] = {};
    for (int kt = 0; kt * TILE < p.kv_len; kt++) {
        float s[TILE], top = m;
        for (int c = 0; c < TILE; c++) {
            const int key = kt * TILE + c;
            s[c] = key < p.kv_len ? 0.0f : -INFINITY;
            for (int d = 0; d < D && key < p.kv_len; d++)
                s[c] += q[d] * k[key * ks.row + d];
            s[c] *= key < p.kv_len ? p.scale : 1.0f;
            top = fmaxf(top, s[c]);
        }
        ASC_RECORD(s, kt, i, TILE, row, i, s[i]);
        const float alpha = expf(m - top);
        m = top;
        ASC_RECORD_ROW(m, kt, row, true, m);
        l *= alpha;
        for (int d = 0; d < D; d++)
            u[d] *= alpha;
        for (int c = 0; c < TILE && kt * TILE + c < p.kv_len; c++) {
            const float w = expf(s[c] - m);
            l += w;
            for (int d = 0; d < D; d++)
                u[d] += w * v[(kt * TILE + c) * ks.row + d];
        }
        ASC_RECORD_ROW(l, kt, row, true, l);
    }
    for (int d = 0; d < D; d++)
        (static_cast<float *>(p.o) + batch * qs.batch + head * qs.head + query * qs.row)[d] = u[d] / l;
    p.lse[(batch * p.heads + head) * p.q_len + query] = m + logf(l);
}

const char *strange_sentence()
{
    static char long_one[100000];
    if (evil("plan-says-much") || evil("launch-says-much"))
        return memset(long_one, 'w', sizeof long_one - 1), long_one;
    if (evil("plan-says-escapes") || evil("launch-says-escapes"))
        return "\033[31mred\033]0;title\007\xff\xfe\xe2\x80\xae";
    return evil("plan-says-nonsense") || evil("launch-says-nonsense") ? reinterpret_cast<const char *>(0x10) : nullptr;
}

const char *plan(const asc_problem *problem, asc_plan *plan)
{
    if (problem->head_dim != D || problem->causal || problem->kv_heads != problem->heads)
        return "head_dim must be 16, and neither a mask nor groups of heads";
    plan->br = plan->bc = plan->threads = TILE;
    if (const char *why = getenv("EVIL") && strncmp(getenv("EVIL"), "plan-", 5) == 0 ? strange_sentence() : nullptr)
        return why;
    if (evil("plan-spins"))
        spin();
    if (evil("plan-is-huge"))
        plan->br = plan->bc = plan->threads = 1024, plan->kv_splits = 2147483647;
    if (evil("plan-is-negative"))
        plan->br = -1, plan->bc = 0, plan->threads = -7;
    if (evil("plan-wants-all-memory"))
        plan->workspace_bytes = ~0ull;
    if (evil("plan-wants-a-terabyte"))
        plan->workspace_bytes = 1ull << 40;
    if (evil("plan-promises-nothing"))
        plan->error_limit = -INFINITY;
    return nullptr;
}

const char *launch(const asc_problem *problem, void *stream)
{
    const asc_strides qs = asc_strides_of(problem, problem->heads, problem->q_len);
    const asc_strides ks = asc_strides_of(problem, problem->kv_heads, problem->kv_len);
    const dim3 grid((problem->q_len + TILE - 1) / TILE, problem->heads, problem->batch);
    misbehave_on_host();
    if (evil("launch-does-nothing"))
        return nullptr;
    if (evil("launch-huge-grid"))
        return ASC_LAUNCH(attention, dim3(4000000000u, 60000, 60000), TILE, 0, stream, *problem, qs, ks);
    if (evil("launch-huge-block"))
        return ASC_LAUNCH(attention, grid, 1 << 30, 0, stream, *problem, qs, ks);
    if (evil("launch-huge-shared"))
        return ASC_LAUNCH(attention, grid, TILE, static_cast<size_t>(1) << 40, stream, *problem, qs, ks);
    if (evil("launch-no-threads"))
        return ASC_LAUNCH(attention, dim3(0, 0, 0), dim3(0, 0, 0), 0, stream, *problem, qs, ks);
    if (evil("writes-its-inputs"))
        memset(const_cast<void *>(problem->v), 0, 16);
    if (getenv("EVIL") && strncmp(getenv("EVIL"), "launch-says", 11) == 0)
        return strange_sentence();
    return ASC_LAUNCH(attention, grid, TILE, 0, stream, *problem, qs, ks);
}

} // namespace

ASC_KERNEL(evil)
{
    kernel.plan = plan;
    kernel.launch = launch;
    kernel.dtypes = ASC_SUPPORTS(F32);
    kernel.conventions.s_unit = ASC_UNIT_SCALED;
    kernel.conventions.m_unit = ASC_UNIT_SCALED;
}
