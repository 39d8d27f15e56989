/* What libattnscope-capture, in the user's process, and `attnscope keep` say to each other. The keeper owns the memory
   file of the trace, asks the guardian for device memory, and saves; so a capture outlives the process that it is of.
   Structures over a SOCK_SEQPACKET socket; both ends are of one ABI version. */
#ifndef BASE_KEEP_H
#define BASE_KEEP_H

#include "engine/base/guardian.h"

enum keep_op {
    KEEP_MAKE,  /* a live trace; its description, JSON, is the file whose fd comes along. Its fd comes back. */
    KEEP_BEGIN, /* the probes are about to be bound: from now on the trace is saved, however the process ends */
    KEEP_END,   /* saved now; of values in the process's own device memory the answer says where they go first, into the
                   file whose fd comes back */
    KEEP_COPIED, /* they are there */
    KEEP_DROP    /* forgotten */
};

enum { KEEP_SOCKET_FD = 3, KEEP_DESCRIPTION_MAX = 1 << 26 };

struct keep_request {
    uint32_t op, abi;       /* enum keep_op, ASC_ABI_VERSION */
    int32_t device;         /* KEEP_MAKE: its ordinal in the user's process, whose environment the keeper shares */
    int32_t memory;         /* KEEP_BEGIN: enum memory_kind, where the probes write */
    int32_t has_o, has_lse; /* KEEP_END: these were handed over */
    int32_t failed;         /* KEEP_END: the CUresult that the kernel stopped with, as `text` says; 0: it did not */
    int32_t lost;           /* KEEP_END: what was recorded is gone */
    double seconds;         /* KEEP_END: between begin and end */
    char text[256];         /* KEEP_COPIED: why they are not; "": they are */
    char memory_why[256], device_name[96];
};

struct keep_answer {
    char failure[1024];                          /* one sentence; "": none */
    int32_t memory;                              /* KEEP_MAKE: what was asked for, enum memory_kind */
    int32_t guarded;                             /* there is a guardian's room: handle */
    unsigned char handle[GUARDIAN_HANDLE_BYTES]; /* of the guardian's room */
    char memory_why[256];                        /* why there is no guardian */
    uint32_t n_pieces;                           /* KEEP_END: what is to be copied; 0: nothing, it is saved */
    struct values_piece piece[GUARDIAN_PARTS];
};

#endif
