// A tool asks the user or his model, and the page is reloaded or cut off before the answer.
import assert from 'node:assert/strict';
import { Proxy } from '../clients/lib/proxy.mjs';
import { eventually } from './lib/eventually.mjs';
import { broken, scenarios } from './lib/scenario.mjs';

/** How each tool is called, how its question is found and answered, and what the result then says. */
const kinds = {
    sampleLLM: {
        args: { prompt: 'What is next?', maxTokens: 40 },
        field: 'Answer',
        send: 'Send',
        ask: /What is next\?/,
    },
    elicitInputs: {
        args: {},
        field: 'name',
        send: 'Accept',
        ask: /./,
    },
};

class Question {
    constructor(call, kind) {
        this.kind = kind;
        this.form = call.question;
        this.field = this.form.getByLabel(kind.field, { exact: true });
    }

    async asked() {
        await this.field.waitFor();
        assert.equal(await this.form.count(), 1, 'one form');
        assert.match(await this.form.innerText(), this.kind.ask);
    }

    async answer(text) {
        await this.field.fill(text);
        await this.form.getByRole('button', { name: this.kind.send, exact: true }).click();
    }
}

async function ask(tab, tool) {
    const call = await tab.call(tool, kinds[tool].args);
    const question = new Question(call, kinds[tool]);
    await question.asked();
    return [call, question];
}

const answers = (tab) => tab.requests.filter(({ message }) => message?.result && message.method === undefined);

async function checkAnswered({ server }, tab, call, word) {
    await call.ended();
    assert.ok((await call.resultText()).includes(word), `"${word}" is in "${await call.resultText()}"`);
    await call.checkOnce();
    assert.equal(await call.question.count(), 0, 'no form is left');
    const accepted = answers(tab).filter(({ status }) => status === 202);
    assert.equal(accepted.length, 1, 'one answer arrived');
    assert.ok(JSON.stringify(accepted[0].message).includes(word));
    const { belay_sessions: sessions, belay_calls_started_total: started, belay_late_answers_total: late }
        = await server.metrics();
    assert.deepEqual({ sessions, started, late }, { sessions: 1, started: 1, late: 0 });
}

async function reload(world, tool) {
    const tab = await world.open();
    const [call, question] = await ask(tab, tool);
    await question.field.fill('half of an ans');
    await tab.page.reload();
    await question.asked();
    await question.answer('after the reload');
    await checkAnswered(world, tab, call, 'after the reload');
}

async function reloadTwice(world, tool) {
    const tab = await world.open();
    const [call, question] = await ask(tab, tool);
    await tab.page.reload();
    await question.asked();
    await tab.page.reload();
    await tab.says('Connected');
    await question.asked();
    await question.answer('third page');
    await checkAnswered(world, tab, call, 'third page');
}

/** A cut asks nothing twice, and keeps what is already typed. */
async function cut(world, tool) {
    const proxy = await Proxy.start(world.server.url);
    world.onClose(() => proxy.close());
    const tab = await world.open({ base: proxy.url });
    const [call, question] = await ask(tab, tool);
    await question.field.fill('typed before the cut');
    const before = tab.requests.length;
    proxy.destroyAll();
    await eventually(() => assert.ok(
        tab.requests.slice(before).filter(({ method, status }) => method === 'GET' && status === 200).length >= 2));
    assert.equal(await question.form.count(), 1);
    assert.equal(await question.field.inputValue(), 'typed before the cut');
    await question.form.getByRole('button', { name: question.kind.send, exact: true }).click();
    await checkAnswered(world, tab, call, 'typed before the cut');
}

/** The answer is given while there is no network, and arrives when there is. */
async function answeredOffline(world, tool) {
    const tab = await world.open();
    const [call, question] = await ask(tab, tool);
    await world.context.setOffline(true);
    await tab.says('Reconnecting…');
    await question.answer('given offline');
    await world.context.setOffline(false);
    await checkAnswered(world, tab, call, 'given offline');
}

/** What was answered is not asked again. */
async function answeredBefore(world, tool) {
    const tab = await world.open();
    const [call, question] = await ask(tab, tool);
    await question.answer('first page');
    await call.ended();
    await tab.page.reload();
    await tab.says('Connected');
    await checkAnswered(world, tab, call, 'first page');
}

async function declined(world) {
    const tab = await world.open();
    const [call, question] = await ask(tab, 'elicitInputs');
    await question.form.getByRole('button', { name: 'Decline', exact: true }).click();
    await call.ended();
    assert.match(await call.resultText(), /decline/);
    await call.checkOnce();
    assert.deepEqual(answers(tab).map(({ message }) => message.result.action), ['decline']);
}

/** Its fields are checked before anything is sent. */
async function validated(world) {
    const tab = await world.open();
    const [call, question] = await ask(tab, 'elicitInputs');
    const accept = question.form.getByRole('button', { name: 'Accept', exact: true });
    await accept.click();
    await eventually(async () => assert.equal(await question.field.getAttribute('aria-invalid'), 'true'));
    assert.deepEqual(answers(tab), []);
    await tab.fill({ name: 'Ada', check: true, email: 'ada@example.com', integer: 101 }, question.form);
    await accept.click();
    const integer = question.form.getByLabel('integer', { exact: true });
    await eventually(async () => assert.equal(await integer.getAttribute('aria-invalid'), 'true'));
    await integer.fill('7');
    await accept.click();
    await call.ended();
    assert.equal(answers(tab).length, 1);
    const { action, content } = answers(tab)[0].message.result;
    const { name, check, email, integer: seven, petType } = content;
    assert.deepEqual({ action, name, check, email, seven, petType },
        { action: 'accept', name: 'Ada', check: true, email: 'ada@example.com', seven: 7, petType: 'dogs' });
}

/** The call is cancelled instead of answered; its question goes with it. */
async function cancelled(world, tool) {
    const tab = await world.open();
    const [call, question] = await ask(tab, tool);
    await call.cancel.click();
    await call.ended();
    assert.match(await call.resultText(), /cancelled/i);
    await eventually(async () => assert.equal(await question.form.count(), 0));
    await call.checkOnce();
    await tab.page.reload();
    await tab.says('Connected');
    assert.equal(await question.form.count(), 0);
}

/** A page is offered, with its host in sight, and never opened by itself. */
async function url(world) {
    const tab = await world.open();
    const call = await tab.call('elicitUrl');
    const link = call.article.getByRole('link');
    await link.waitFor();
    const target = new URL(await link.getAttribute('href'));
    assert.match(target.protocol, /^https?:$/);
    assert.ok((await call.article.innerText()).includes(target.host));
    await call.article.getByRole('button', { name: 'Accept', exact: true }).click();
    await call.ended();
    assert.match(await call.resultText(), /accept/);
    assert.equal(world.context.pages().length, 1, 'no page was opened');
}

/** A question that belongs to no call: the server asks before a resource is subscribed to. */
async function subscribing({ open }) {
    const tab = await open();
    await tab.button('Resources').click();
    await tab.page.getByText('Resource 1', { exact: true }).first().click();
    await tab.button('Subscribe').click();
    const answer = tab.page.getByLabel('Answer', { exact: true });
    await answer.waitFor();
    assert.ok(await tab.button('Subscribing…').isDisabled(), 'it is asked for once');
    assert.match(await tab.page.getByRole('main').innerText(), /A client subscribes to test:\/\/static\/resource\/1/);
    await answer.fill('so be it');
    await tab.button('Send').click();
    await tab.button('Unsubscribe').waitFor();
    assert.equal(await answer.count(), 0);
    await tab.button('Unsubscribe').click();
    await tab.button('Subscribe').waitFor();
    assert.equal(tab.requests.filter(({ message }) => message?.method === 'resources/subscribe').length, 1);
}

/** The page is reloaded before that question is answered: it waits on, and the answer completes what was asked for. */
async function subscribingReloaded({ open }) {
    const tab = await open();
    await tab.button('Resources').click();
    await tab.page.getByText('Resource 1', { exact: true }).first().click();
    await tab.button('Subscribe').click();
    const answer = tab.page.getByLabel('Answer', { exact: true });
    await answer.waitFor();
    await answer.fill('half of an ans');
    for (let count = 0; count < 2; ++count) {
        await tab.page.reload();
        await tab.button('Subscribing…').waitFor();
        await answer.waitFor();
        await tab.said(['Reconnecting…', 'Reconnected']);
        assert.ok(await tab.button('Subscribing…').isDisabled(), 'it still waits');
        assert.equal(await answer.count(), 1, 'one question');
        assert.equal(await answer.inputValue(), 'half of an ans');
    }
    await answer.fill('so be it');
    await tab.button('Send').click();
    await tab.button('Unsubscribe').waitFor();
    assert.equal(await answer.count(), 0);
    const sent = (method) => tab.requests.filter(({ message }) => message?.method === method);
    assert.equal(sent('resources/subscribe').length, 1, 'it is asked for once');
    assert.equal(answers(tab).filter(({ status }) => status === 202).length, 1);
    await tab.page.reload();
    await tab.button('Unsubscribe').click();
    await tab.button('Subscribe').waitFor();
    await eventually(() => assert.deepEqual(sent('resources/unsubscribe').map(({ status }) => status), [200]));
}

const both = (name, options, body) => Object.entries({ sampleLLM: 'AS-52', elicitInputs: 'AS-53' }).map(
    ([tool, scenario]) => [`${name}: ${tool} (${scenario})`, options, (world) => body(world, tool)]);

scenarios('questions', [
    ...both('reload while asked', {}, reload),
    ...both('two reloads while asked', {}, reloadTwice),
    ...both('network cut while asked', { expected: [broken] }, cut),
    ...both('answered without a network', { expected: [broken] }, answeredOffline),
    ...both('answered before the reload', {}, answeredBefore),
    ...both('cancelled while asked', {}, cancelled),
    ['declined', {}, declined],
    ['checked before it is sent', {}, validated],
    ['a page to open', {}, url],
    ['asked by no call', {}, subscribing],
    ['reload while asked by no call', {}, subscribingReloaded],
]);
