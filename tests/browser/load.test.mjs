// Much at once in one page, which has six connections to its server.
import assert from 'node:assert/strict';
import { notifications, utility } from '../clients/lib/expect.mjs';
import { eventually } from './lib/eventually.mjs';
import { scenarios } from './lib/scenario.mjs';

async function tenCalls({ open, server }) {
    const tab = await open();
    const running = async () => (await server.metrics()).belay_calls_running;
    const asking = await tab.call('elicitInputs');
    const doomed = await tab.call(notifications, utility(110, 500, 'to be cancelled'));
    const steps = await tab.call('longRunningOperation', { duration: 25, steps: 50 });
    const plans = Array.from({ length: 7 }, (_, at) => utility(20, 500, `call ${at} of seven`));
    await tab.select(notifications);
    await tab.fill(plans[0]);
    const calls = [];
    for (const { messagePrefix } of plans) {
        await tab.fill({ messagePrefix });
        await tab.button('Run').click();
        calls.push(tab.find(notifications, messagePrefix));
    }
    await server.until((now) => now.belay_calls_started_total === 10);
    assert.equal(await running(), 10);

    const question = asking.question;
    await question.getByLabel('name', { exact: true }).fill('Ada');
    await question.getByRole('button', { name: 'Accept', exact: true }).click();
    await asking.ended();
    assert.match(await asking.resultText(), /Ada/);
    await doomed.cancel.click();
    await doomed.ended();
    assert.match(await doomed.resultText(), /cancelled/i);
    assert.equal(await running(), 8, 'the others still run');

    // All of them are followed, though there are not as many connections.
    await Promise.all(calls.map((call) => call.reaches(2)));
    await eventually(async () => assert.ok(Number(await steps.bar.getAttribute('aria-valuenow')) >= 2));
    for (const [at, call] of calls.entries())
        await call.checkWhole(plans[at]);
    await steps.ended();
    assert.match(await steps.resultText(), /Duration: 25 seconds, Steps: 50\./);
    assert.equal(await tab.page.getByRole('article').count(), 10);
    assert.equal(await tab.results.count(), 10);
    assert.ok(tab.statuses.every((text) => !/Reconnecting/.test(text)), 'sharing connections is no trouble');
    assert.equal((await server.metrics()).belay_calls_started_total, 10);
    assert.equal(tab.sessions.length, 1);
}

/** While messages come as fast as the page takes them, it does what it is asked to. */
async function flood({ open, server }) {
    const tab = await open();
    const call = await tab.call('burst', { count: 10_000_000 });
    await call.log.getByText('burst').first().waitFor();
    const echo = await tab.call('echo', { message: 'still here' });
    await echo.ended();
    assert.match(await echo.resultText(), /still here/);
    await call.cancel.click();
    await call.ended();
    assert.match(await call.resultText(), /cancelled/i);
    await call.checkOnce();
    await server.until((now) => now.belay_calls_running === 0);
}

async function burst({ open }) {
    const count = 10_000;
    const tab = await open();
    const call = await tab.call('burst', { count });
    await eventually(async () => assert.match(await call.resultText(), /10000 messages sent/), 60_000);
    // Each line is where it is if all lines before it are there once, and none after it is missing.
    const number = (text) => Number(/\bburst (\d+)\/10000/.exec(text)?.[1]);
    const samples = await call.samples(60);
    assert.ok(samples.length > 600);
    for (const { text, share } of samples)
        assert.equal(number(text), Math.floor(share * count) + 1, text);
    assert.deepEqual([number(samples[0].text), number(samples.at(-1).text)], [1, count]);
    assert.match(await call.article.innerText(), /\b10,?000 lines\b/);
    await call.checkOnce();

    // A reload keeps the end of it, and says how much there was.
    await tab.page.reload();
    await tab.says('Connected');
    const kept = (await call.messages()).map(number);
    assert.ok(kept.length > 0);
    assert.deepEqual(kept, Array.from({ length: kept.length }, (_, at) => count - kept.length + 1 + at));
    assert.match(await call.article.innerText(), /\b10,?000 lines\b/);
}

/** The page is reloaded in the midst of it; what the browser had taken and the page had not read comes again. */
async function burstReloaded({ open, server }) {
    const tab = await open();
    const call = await tab.call('burst', { count: 3000 });
    await call.log.getByText('burst').first().waitFor();
    await tab.page.reload();
    await eventually(async () => assert.match(await call.resultText(), /3000 messages sent/), 60_000);
    const numbers = (await call.lines()).map((line) => /\bburst (\d+)\/3000/.exec(line)?.[1])
        .filter((number) => number);
    const first = Number(numbers[0]);
    assert.deepEqual(numbers.map(Number), Array.from({ length: 3001 - first }, (_, at) => first + at), 'without a gap');
    assert.match(await call.article.innerText(), /\b3,?000 lines\b/, 'all are counted');
    assert.equal((await server.metrics()).belay_gaps_told_total, 0);
}

/** The server waits for a page that is slow because the machine is. */
const patient = { flags: ['--flow-stall', '60s', '--flow-grace', '60s', '--events-max-per-stream', '20000'] };

scenarios('load', [
    ['ten calls, a cancel and an answer', {}, tenCalls],
    ['a flood of messages', patient, flood],
    ['a burst of 10,000 messages', patient, burst],
    ['a reload in a burst', patient, burstReloaded],
]);
