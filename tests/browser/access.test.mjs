// For people who use the keyboard, a screen reader, a dark screen or a phone.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { notifications, utility } from '../clients/lib/expect.mjs';
import { eventually } from './lib/eventually.mjs';
import { broken, scenarios } from './lib/scenario.mjs';

const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** What is wrong at a place, each problem on a line. */
async function look(tab, place) {
    await tab.page.evaluate(axe);
    const found = await tab.page.evaluate(async () => {
        const { violations } = await window.axe.run(document, { resultTypes: ['violations'] });
        // Every call has a region "Result", inside an article that says which call it is.
        const isResult = ({ html }) => html.startsWith('<section class="result" aria-label="Result">');
        return violations
            .map(({ id, nodes }) => [id, id === 'landmark-unique' ? nodes.filter((node) => !isResult(node)) : nodes])
            .filter(([, nodes]) => nodes.length > 0)
            .map(([id, nodes]) => `${id}, ${nodes.length} times: ${nodes[0].html}`);
    });
    const { width } = tab.page.viewportSize();
    if (await tab.page.evaluate(() => document.documentElement.scrollWidth) > width)
        found.push('something sticks out to the right');
    return found.map((text) => `${place}: ${text}`);
}

async function everyPlace({ open }) {
    const tab = await open();
    await tab.button('echo').waitFor();
    const found = await look(tab, 'start page');
    await tab.select('json_schema_2020_12_tool');
    found.push(...await look(tab, 'a form'));
    const tools = ['test_multiple_content_types', 'test_error_handling', 'test_audio_content', 'mcp_apps_hello_world'];
    for (const tool of tools)
        await (await tab.call(tool)).ended();
    await (await tab.call('elicitInputs')).question.waitFor();
    const asking = await tab.call('sampleLLM', { prompt: 'Why?' });
    await asking.question.waitFor();
    const running = await tab.call(notifications, utility(60, 100, 'running'));
    await running.reaches(3);
    await tab.select('add');
    await tab.button('Run').click();
    await eventually(async () =>
        assert.equal(await tab.form.getByLabel('a', { exact: true }).getAttribute('aria-invalid'), 'true'));
    found.push(...await look(tab, 'problems, questions, calls that run and that have ended'));
    await running.cancel.click();
    await running.ended();
    await tab.page.reload();
    await asking.question.waitFor();
    found.push(...await look(tab, 'after a reload'));
    assert.deepEqual(found, []);
}

async function offline(world) {
    const tab = await world.open();
    await world.context.setOffline(true);
    await tab.button('Retry now').waitFor();
    const found = await look(tab, 'reconnecting');
    await tab.button('Disconnect').click();
    await tab.says('Disconnected');
    found.push(...await look(tab, 'disconnected'));
    assert.deepEqual(found, []);
}

/** What has the focus looks different without it. */
async function checkSeen({ page }, locator) {
    const { x, y, width, height } = await locator.boundingBox();
    const left = Math.max(0, x - 6);
    const top = Math.max(0, y - 6);
    const clip = {
        x: left, y: top, width: Math.min(width + 12, 1280 - left), height: Math.min(height + 12, 800 - top),
    };
    const focused = await page.screenshot({ clip, caret: 'hide' });
    await locator.evaluate((element) => element.blur());
    const plain = await page.screenshot({ clip, caret: 'hide' });
    await locator.focus();
    assert.ok(!focused.equals(plain), `the focus on ${locator} can be seen`);
}

/** Moves the focus by the keyboard alone. */
async function goTo(tab, locator, key = 'Tab') {
    for (let count = 0; count < 80; ++count) {
        await tab.page.keyboard.press(key);
        if (!await locator.evaluate((element) => element === document.activeElement))
            continue;
        await checkSeen(tab, locator);
        return;
    }
    assert.fail(`${locator} is out of reach`);
}

async function keyboard({ open, server }) {
    const tab = await open();
    const { keyboard: keys } = tab.page;
    await tab.button(notifications).waitFor();
    await keys.press('/');
    await keys.type('utility');
    await eventually(async () => assert.equal(await tab.button('echo').count(), 0, 'the list is searched'));
    await goTo(tab, tab.button(notifications));
    await keys.press('Enter');
    for (const [name, value] of Object.entries(utility(60, 200, 'by keyboard'))) {
        await goTo(tab, tab.form.getByLabel(name, { exact: true }));
        await keys.press('Control+A');
        await keys.type(String(value));
    }
    await goTo(tab, tab.button('Run'));
    await keys.press('Space');
    const call = tab.find(notifications, 'by keyboard');
    await call.reaches(2);
    await goTo(tab, call.cancel);
    await keys.press('Enter');
    await call.ended();
    assert.match(await call.resultText(), /cancelled/i);
    await server.until((now) => now.belay_calls_running === 0);

    // Enter in a field runs, too.
    await keys.press('/');
    await keys.press('Control+A');
    await keys.type('add');
    await goTo(tab, tab.button('add'));
    await keys.press('Enter');
    await goTo(tab, tab.form.getByLabel('a', { exact: true }));
    await keys.type('20');
    await goTo(tab, tab.form.getByLabel('b', { exact: true }));
    await keys.type('22');
    await keys.press('Enter');
    const sum = tab.find('add');
    await sum.ended();
    assert.match(await sum.resultText(), /42/);
    // The log can be reached, to scroll it.
    await goTo(tab, call.log);
}

/** Names and states that a screen reader tells. */
async function semantics({ open }) {
    const tab = await open();
    const { page } = tab;
    for (const role of ['banner', 'navigation', 'main', 'complementary', 'status'])
        assert.equal(await page.getByRole(role).count(), 1, role);
    assert.equal(await page.getByRole('heading', { level: 1 }).count(), 1);
    const call = await tab.call('longRunningOperation', { duration: 20, steps: 40 });
    await eventually(async () => assert.ok(Number(await call.bar.getAttribute('aria-valuenow')) >= 1));
    assert.equal(await call.bar.getAttribute('aria-valuemax'), '40');
    await call.cancel.click();
    await call.ended();
}

const sizes = {
    light: { colorScheme: 'light' },
    dark: { colorScheme: 'dark' },
    phone: { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true },
};

scenarios('access', [
    ...Object.entries(sizes).map(([name, context]) => [`axe, ${name}`, { context }, everyPlace]),
    ['axe without a network', { expected: [broken] }, offline],
    ['axe without a network, phone', { context: sizes.phone, expected: [broken] }, offline],
    ['keyboard only', {}, keyboard],
    ['roles', {}, semantics],
]);
