// A tool asks the client (sampling, elicitation) and the page dies before it has answered.
import assert from 'node:assert/strict';
import { Proxy } from './lib/proxy.mjs';
import { scenarios } from './lib/scenario.mjs';

const sampled = (text) => ({ model: 'referee', role: 'assistant', content: { type: 'text', text } });
const accepted = (name) => ({ action: 'accept', content: { name } });

/** What each tool asks, and how to answer so that the word turns up in its result. */
const kinds = {
    sampleLLM: {
        args: { prompt: 'What is next?', maxTokens: 40 },
        method: 'sampling/createMessage',
        answer: sampled,
        check: ({ messages, maxTokens }) => {
            assert.equal(maxTokens, 40);
            assert.match(messages[0].content.text, /What is next\?/);
        },
    },
    elicitInputs: {
        args: {},
        method: 'elicitation/create',
        answer: accepted,
        check: ({ requestedSchema: { properties, required } }) => {
            assert.deepEqual(
                Object.keys(properties).sort(),
                ['birthdate', 'check', 'color', 'email', 'homepage', 'integer', 'name', 'number', 'petType']);
            assert.deepEqual(required, ['name']);
            assert.equal(properties.integer.default, 42);
            assert.equal(properties.petType.default, 'dogs');
        },
    },
    test_sampling: {
        args: { prompt: 'What is next?' },
        method: 'sampling/createMessage',
        answer: sampled,
        check: ({ messages, maxTokens }) => {
            assert.equal(maxTokens, 100);
            assert.equal(messages[0].content.text, 'What is next?');
        },
    },
    test_elicitation: {
        args: { message: 'Who is there?' },
        method: 'elicitation/create',
        answer: (name) => ({ action: 'accept', content: { username: name, email: 'a@example.com' } }),
        check: ({ message, requestedSchema }) => {
            assert.equal(message, 'Who is there?');
            assert.deepEqual(requestedSchema.required.toSorted(), ['email', 'username']);
        },
    },
};

const never = () => new Promise(() => {});

function deferred() {
    const it = {};
    it.promise = new Promise((resolve) => (it.resolve = resolve));
    return it;
}

const questionsIn = (page, kind) => page.seen.filter(({ method }) => method === kind.method);

const textOf = (result) => result.content.map(({ text }) => text ?? '').join('\n');

function checkAnswered(result, word) {
    assert.notEqual(result.isError, true, textOf(result));
    assert.ok(textOf(result).includes(word), `"${word}" is in "${textOf(result)}"`);
}

/** A page that is being asked. */
async function askedPage(world, tool, options) {
    const kind = kinds[tool];
    const page = await world.page(options);
    const call = page.call('a', tool, kind.args);
    await page.until(() => page.asked.length > 0);
    assert.equal(page.asked[0].method, kind.method);
    kind.check(page.asked[0].params);
    assert.ok(call.cursor, 'there is a cursor before the question');
    assert.notEqual(call.cursor, call.newest);
    return [page, call];
}

async function refresh(world, tool) {
    const { server, wire } = world;
    const kind = kinds[tool];
    const [page] = await askedPage(world, tool, { answer: never });
    const kept = await page.leave();
    const next = await world.page({ ...kept, answer: async () => kind.answer('new page') });
    checkAnswered(await next.resume(kept.calls.a), 'new page');
    assert.equal(next.asked.length, 1, 'asked once more, not twice');
    assert.deepEqual(next.asked, page.asked);
    assert.equal(questionsIn(next, kind)[0].id, questionsIn(page, kind)[0].id, 'it is the same question');
    assert.equal(wire.of(kept.calls.a).length, 2);
    const { belay_sessions: sessions, belay_calls_started_total: started } = await server.metrics();
    assert.deepEqual({ sessions, started }, { sessions: 1, started: 1 });
}

/** The old page is not dead: it has lost its connection and still answers, after the new one did. */
async function lateAnswer(world, tool) {
    const { wire } = world;
    const kind = kinds[tool];
    const late = deferred();
    const reconnectionOptions
        = { initialReconnectionDelay: 1, maxReconnectionDelay: 1, reconnectionDelayGrowFactor: 1, maxRetries: 0 };
    const [page] = await askedPage(world, tool, { answer: () => late.promise, reconnectionOptions });
    const kept = page.keep();
    const next = await world.page({ ...kept, answer: async () => kind.answer('new page') });
    checkAnswered(await next.resume(kept.calls.a), 'new page');
    const answers = () => wire.exchanges.filter(({ message }) => message?.id === questionsIn(page, kind)[0].id
        && message.result && message.method === undefined);
    await wire.until(() => answers().every(({ status }) => status)); // it may come after the result
    assert.deepEqual(answers().map(({ status }) => status), [202]);
    late.resolve(kind.answer('old page'));
    await wire.until(() => answers().length === 2 && answers()[1].status);
    assert.equal(answers()[1].status, 202);
    assert.match(JSON.stringify(answers()[1].message), /old page/);
    // The result is what it was, also for a page that reads the whole call again.
    const [{ id: first }] = wire.of(kept.calls.a)[0].events;
    const again = await world.page({ ...kept, answer: never });
    checkAnswered(await again.resume({ cursor: first }), 'new page');
    assert.equal(again.asked.length, 0);
    await again.ping();
}

async function networkCut(world, tool) {
    const { wire, server } = world;
    const kind = kinds[tool];
    const proxy = await Proxy.start(server.url);
    world.onClose(() => proxy.close());
    const reconnectionOptions
        = { initialReconnectionDelay: 50, maxReconnectionDelay: 50, reconnectionDelayGrowFactor: 1, maxRetries: 5 };
    const answer = deferred();
    const [page, call] = await askedPage(
        world, tool, { url: proxy.url, answer: () => answer.promise, reconnectionOptions });
    proxy.destroyAll();
    await wire.until(() => wire.of(call)[1]?.openedAt);
    answer.resolve(kind.answer('after the cut'));
    checkAnswered(await call.result, 'after the cut');
    assert.equal(page.asked.length, 1);
    assert.equal(questionsIn(page, kind).length, 1);
    assert.equal(wire.of(call).length, 2);
}

/** What was answered is not asked again, even from a cursor before it. */
async function alreadyAnswered(world, tool) {
    const { wire } = world;
    const kind = kinds[tool];
    const page = await world.page({ answer: async () => kind.answer('first page') });
    const call = page.call('a', tool, kind.args);
    checkAnswered(await call.result, 'first page');
    const [{ id: first }] = wire.of(call)[0].events;
    const kept = await page.leave();
    const next = await world.page({ ...kept, answer: never });
    checkAnswered(await next.resume({ ...kept.calls.a, cursor: first }), 'first page');
    assert.equal(next.asked.length, 0);
    assert.ok(!wire.exchanges.at(-1).text.includes(kind.method));
}

/** A page that had committed its cursor past the question must have kept the question, and can answer it. */
async function keptQuestion(world, tool) {
    const kind = kinds[tool];
    const [page, call] = await askedPage(world, tool, { answer: never });
    const kept = await page.leave();
    const next = await world.page({ ...kept, answer: never });
    const result = next.resume({ ...kept.calls.a, cursor: call.newest });
    await next.respond(questionsIn(page, kind)[0].id, kind.answer('from storage'));
    checkAnswered(await result, 'from storage');
    assert.equal(next.asked.length, 0);
}

/** The second page dies being asked, too. */
async function twice(world, tool) {
    const kind = kinds[tool];
    const [page] = await askedPage(world, tool, { answer: never });
    const first = await page.leave();
    const second = await world.page({ ...first, answer: never });
    await second.follow('a', first.calls.a);
    await second.until(() => second.asked.length > 0);
    const kept = await second.leave();
    const third = await world.page({ ...kept, answer: async () => kind.answer('third page') });
    checkAnswered(await third.resume(kept.calls.a), 'third page');
    assert.deepEqual([page, second, third].map(({ asked }) => asked.length), [1, 1, 1]);
}

const both = (name, options, body) => ['sampleLLM', 'elicitInputs'].map(
    (tool) => [`${name}: ${tool} (${tool === 'sampleLLM' ? 'AS-52' : 'AS-53'})`, options, (world) => body(world, tool)]);

scenarios('questions', [
    ...both('refresh while asked', {}, refresh),
    ...['test_sampling', 'test_elicitation'].map(
        (tool) => [`refresh while asked: ${tool}`, {}, (world) => refresh(world, tool)]),
    ...both('two refreshes while asked', {}, twice),
    ...both('late answer of the old page', { errors: true }, lateAnswer),
    ...both('network cut while asked', { errors: true }, networkCut),
    ...both('answered before the refresh', {}, alreadyAnswered),
    ...both('answered from what the page kept', {}, keptQuestion),
]);
