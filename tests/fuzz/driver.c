/* The main() of a fuzz target where there is no libFuzzer.

       fuzz_NAME FILE|FOLDER...                     replays them, in the order of their names
       fuzz_NAME --seconds S --kept FILE FOLDER...  then changes them at random for so long; FILE holds the last input

   Prints how many inputs it ran. */
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { SIZE_MAX_INPUT = 1 << 20 };
#pragma weak LLVMFuzzerCustomMutator

static struct input {
    uint8_t *data;
    size_t size;
} * inputs;
static size_t n_inputs;
static uint64_t state = 1;

static unsigned random_below(size_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((state >> 33) % n);
}

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max)
{
    const size_t at = random_below(size + 1);
    switch (random_below(5)) {
    case 0: /* a byte more */
        if (size >= max)
            return size;
        memmove(data + at + 1, data + at, size - at);
        data[at] = (uint8_t)random_below(256);
        return size + 1;
    case 1: /* some bytes less */
        if (at == size)
            return size;
        memmove(data + at, data + at + 1, size - at - 1);
        return size - 1;
    case 2: /* a piece of another input */
        if (n_inputs) {
            const struct input *from = &inputs[random_below(n_inputs)];
            const size_t begin = random_below(from->size + 1);
            size_t n = random_below(from->size - begin + 1);
            n = n < max - at ? n : max - at;
            memcpy(data + at, from->data + begin, n);
            return at + n > size ? at + n : size;
        }
        return size;
    default:
        if (at < size)
            data[at] = random_below(2) ? (uint8_t)(1u << random_below(8) ^ data[at]) : (uint8_t)random_below(256);
        return size;
    }
}

static int add_file(const char *path)
{
    static uint8_t bytes[SIZE_MAX_INPUT];
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, bytes, sizeof bytes);
    struct input *more = n < 0 ? NULL : realloc(inputs, (n_inputs + 1) * sizeof *inputs);
    if (fd >= 0)
        close(fd);
    if (!more)
        return -1;
    inputs = more;
    inputs[n_inputs].data = malloc((size_t)n + 1);
    if (!inputs[n_inputs].data)
        return -1;
    memcpy(inputs[n_inputs].data, bytes, (size_t)n);
    inputs[n_inputs++].size = (size_t)n;
    return 0;
}

static int add(const char *path)
{
    struct dirent **names;
    const int n = scandir(path, &names, NULL, alphasort);
    if (n < 0)
        return add_file(path);
    int failed = 0;
    for (int i = 0; i < n; i++) {
        char file[PATH_MAX];
        snprintf(file, sizeof file, "%s/%s", path, names[i]->d_name);
        if (names[i]->d_name[0] != '.' && !failed)
            failed = add_file(file);
        free(names[i]);
    }
    free(names);
    return failed;
}

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The input lies in a file before it is run, so that a crash leaves it there. */
static size_t mutate_for(double seconds, const char *kept)
{
    const double end = seconds_now() + seconds;
    const size_t room = sizeof(uint64_t) + SIZE_MAX_INPUT;
    const int fd = open(kept, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    uint8_t *held = fd < 0 || ftruncate(fd, (off_t)room) != 0
                        ? MAP_FAILED
                        : mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    size_t n = 0;
    if (held == MAP_FAILED || n_inputs == 0)
        return 0;
    state = (uint64_t)time(NULL);
    uint8_t *data = held + sizeof(uint64_t); /* behind its size */
    for (; seconds_now() < end; n++) {
        const struct input *from = &inputs[random_below(n_inputs)];
        uint64_t size = from->size;
        memcpy(data, from->data, from->size);
        for (unsigned times = 1 + random_below(8); times > 0; times--)
            size = LLVMFuzzerCustomMutator ? LLVMFuzzerCustomMutator(data, size, SIZE_MAX_INPUT, random_below(1u << 31))
                                           : LLVMFuzzerMutate(data, size, SIZE_MAX_INPUT);
        memcpy(held, &size, sizeof size);
        LLVMFuzzerTestOneInput(data, size);
    }
    munmap(held, room);
    close(fd);
    unlink(kept);
    return n;
}

int main(int argc, char **argv)
{
    double seconds = 0;
    const char *kept = NULL;
    size_t n = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc) {
            seconds = strtod(argv[++i], NULL);
        } else if (strcmp(argv[i], "--kept") == 0 && i + 1 < argc) {
            kept = argv[++i];
        } else if (add(argv[i]) != 0) {
            fprintf(stderr, "%s: cannot be read\n", argv[i]);
            return 2;
        }
    }
    for (; n < n_inputs; n++)
        LLVMFuzzerTestOneInput(inputs[n].data, inputs[n].size);
    if (seconds > 0 && kept)
        n += mutate_for(seconds, kept);
    for (size_t i = 0; i < n_inputs; i++)
        free(inputs[i].data);
    free(inputs);
    printf("%zu inputs\n", n);
    return 0;
}
