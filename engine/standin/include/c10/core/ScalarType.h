#include "engine/standin/extension.h"
