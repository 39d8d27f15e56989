#include "cli/options.h"
#include "cli/report.h"
#include "tui/tui.h"

#include <string.h>
#include <unistd.h>

static int usable_terminal(void)
{
    const char *term = getenv("TERM");
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && term && strcmp(term, "dumb") != 0;
}
