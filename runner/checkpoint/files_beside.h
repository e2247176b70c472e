#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

// The small files of a model's folder that are no weights: generation_config.json, a chat template, the tokenizer's, a
// licence. They go with the weights wherever these go, as they came.
namespace trainyard::checkpoint {

constexpr uint64_t kMaxBytesBeside = uint64_t{32} << 20;  ///< of one such file

/// Whether a file of this name is a tokenizer's and says nothing without the rest of it. A chat template is none: it
/// also goes with another tokenizer.
bool is_tokenizer_file(std::string_view name);

/// The files of the tokenizer that is the file or folder `path`, with its chat template; none for "bytes" and "".
std::vector<std::filesystem::path> tokenizer_files(const std::filesystem::path& path);

/// What goes with the weights at `weights` (open_weights.h), by name: regular files up to kMaxBytesBeside (a
/// tokenizer's: kMaxCopiedBytes) in their folder, also where they are links. Not among them are weights of any program
/// and their indexes, config.json, what describes a quantisation or an adapter, and hidden names. Of a checkpoint that
/// holds no tokenizer they are also the tokenizer's files that it records. Beside a file of weights without a config.json
/// it is the tokenizer's alone. Throws InputError where the folder may not be read.
std::vector<std::filesystem::path> files_beside(const std::filesystem::path& weights);

/// The folder whose files those are.
std::filesystem::path model_folder_of(const std::filesystem::path& weights);

/// Warns, in one line, of what in that folder goes nowhere: files that are too large, folders, links to nothing.
void warn_of_left_behind(const std::filesystem::path& weights);

}  // namespace trainyard::checkpoint
