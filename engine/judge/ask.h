/* What attnscope says to an attnscope-judge that serves, and what that answers: packets of a socket. The first answer
   comes unasked, when the device is there. Valid as C and C++. */
#ifndef JUDGE_ASK_H
#define JUDGE_ASK_H

#define JUDGE_SOCKET 3

struct judge_ask {
    char work[64], trace[64]; /* paths of the two files */
};

struct judge_answer {
    char device[64];         /* "NVIDIA H200"; "": there is none */
    char failure[200];       /* one sentence; "": the work is done */
    double copying, judging; /* seconds that it took: inputs to the device; the rest, captured values among it */
};

#endif
