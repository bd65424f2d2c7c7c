// A coroutine type and operations, enough for the probes to be read by a compiler. Nothing here is run.
#pragma once

#include <coroutine>
#include <functional>
#include <string>
#include <vector>

template<class T>
struct task {
    struct promise_type {
        task get_return_object();
        std::suspend_always initial_suspend();
        std::suspend_always final_suspend() noexcept;
        void unhandled_exception();
        void return_value(T);
    };
    bool await_ready();
    void await_suspend(std::coroutine_handle<>);
    T await_resume();
};

struct pair_of_texts { // an aggregate with destructors
    std::string first;
    std::string second;
};

struct named { // the same with a constructor
    explicit named(std::string first, std::string second = {});
    std::string first;
    std::string second;
};

task<std::string> fetch(pair_of_texts);
task<std::string> fetch_named(named);
task<std::string> run(std::function<std::string()>);
task<std::string> collect(std::vector<std::string>);
