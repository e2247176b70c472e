#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "common/mutex.h"

namespace trainyard::tokenizer {

/// What calls of encode() work with, kept for the calls after them: one for each thread that encodes at once.
template <typename Workspace>
class Workspaces {
 public:
  /// Lends a workspace to one call, and takes it back when the loan ends.
  class Loan {
   public:
    explicit Loan(Workspaces& owner) : owner_(owner), workspace_(owner.take()) {}
    ~Loan() { owner_.give_back(std::move(workspace_)); }
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    [[nodiscard]] Workspace& operator*() const { return *workspace_; }

   private:
    Workspaces& owner_;
    std::unique_ptr<Workspace> workspace_;
  };

 private:
  std::unique_ptr<Workspace> take() {
    {
      const MutexLock lock(mutex_);
      if (!idle_.empty()) {
        auto workspace = std::move(idle_.back());
        idle_.pop_back();
        return workspace;
      }
    }
    return std::make_unique<Workspace>();
  }
  void give_back(std::unique_ptr<Workspace> workspace) {
    const MutexLock lock(mutex_);
    idle_.push_back(std::move(workspace));
  }

  Mutex mutex_;
  std::vector<std::unique_ptr<Workspace>> idle_ GUARDED_BY(mutex_);
};

}  // namespace trainyard::tokenizer
