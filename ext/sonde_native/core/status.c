/* status: see status.h. Called by whoever shows a result to people, in any context; no locks. */
#include "status.h"

const char *sn_status_text(sn_status status) {
  switch (status) {
    case SN_OK:
      return "ok";
    case SN_FULL:
      return "a memory limit was reached";
    case SN_NO_MEMORY:
      return "out of memory";
    case SN_MALFORMED:
      return "malformed input";
    case SN_TOO_LARGE:
      return "input too large";
    case SN_MISMATCH:
      return "profiles cannot be combined";
    case SN_INVALID:
      return "invalid argument";
  }
  return "unknown status";
}
