#pragma once

namespace trainyard {

/// Stands /dev/null in for those of stdin, stdout and stderr that are closed: a file that is opened later would get its
/// number, and what is meant for stdout would go there. stdout cannot be written as before. Before anything is opened.
void keep_standard_streams();

}  // namespace trainyard
