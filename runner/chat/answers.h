#pragma once

#include "chat/folder.h"

namespace trainyard::chat {

/// A conversation as its template prints it, `generated` covering the assistant's answers: what is inside of the tag
/// `generation` where the template has that. Where it has not, each answer is what the template prints with it and does
/// not print before it with add_generation_prompt, as long as that is certain: what comes before an answer must be
/// printed the same with and without it, and so must the answer with and without what follows.
/// Throws InputError, naming the message, where that does not hold, and as render_conversation().
Rendered render_answers(const TokenizerChat& chat, const Conversation& conversation, const Settings& settings);

}  // namespace trainyard::chat
