/* What attnscope and its guardian say to each other. The guardian, `attnscope-device guard`, owns the device memory
   that a kernel's probes write to: what they wrote outlives the kernel's process, however that ends. Requests and
   answers are structures over a SOCK_SEQPACKET socket, both ends of one build. */
#ifndef BASE_GUARDIAN_H
#define BASE_GUARDIAN_H

#include "engine/base/dtype.h"

enum guardian_op {
    GUARDIAN_TAKE, /* makes room for bytes `begin` to `end` of a file, filled with the patterns of the parts */
    GUARDIAN_COPY  /* copies pieces of that room to the file whose fd comes along */
};

enum { GUARDIAN_SOCKET_FD = 3, GUARDIAN_PARTS = 32, GUARDIAN_HANDLE_BYTES = 64 /* CUDA_IPC_HANDLE_SIZE */ };

/* Bytes of the room and where they go in a file. */
struct values_piece {
    uint64_t from, to, bytes;
};

struct guardian_request {
    uint32_t op; /* enum guardian_op */
    uint32_t n_parts;
    uint64_t begin, end;
    uint64_t beside; /* bytes of device memory that must stay free beside it, and beside a tenth of what is free */
    struct unwritten_part part[GUARDIAN_PARTS]; /* GUARDIAN_TAKE: of the file; what lies between is filled */
    struct values_piece piece[GUARDIAN_PARTS];  /* GUARDIAN_COPY */
};

struct guardian_answer {
    char failure[256];                           /* one sentence; "": none */
    unsigned char handle[GUARDIAN_HANDLE_BYTES]; /* of the room, for cudaIpcOpenMemHandle() */
};

#endif
