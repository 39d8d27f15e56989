/* Where a test's files go: below TMPDIR, which tests/run empties behind each program, whatever that came to. */
#ifndef TEST_TEMPORARY_H
#define TEST_TEMPORARY_H

enum { TEMPORARY = 256 };

/* A template for mkstemp() or mkdtemp(); path, [TEMPORARY]. */
char *temporary(char *path, const char *name);

#endif
