// Pictures of the page, to be looked at: build/screenshots/. With BELAY_UPDATE_IMAGES, also the documentation's.
import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { notifications, utility } from '../clients/lib/expect.mjs';
import { eventually } from './lib/eventually.mjs';
import { broken, pictures, scenarios } from './lib/scenario.mjs';

const documentation = fileURLToPath(new URL('../../docs/images/', import.meta.url));

async function take(tab, name, folder = pictures) {
    await mkdir(folder, { recursive: true });
    // No pointer over anything, and no field with a caret.
    await tab.page.mouse.move(0, 0);
    const bytes = await tab.page.screenshot({ path: `${folder}${name}.png`, caret: 'hide' });
    assert.ok(bytes.length > 0);
}

const recovered = async (tab) => eventually(async () =>
    assert.match(await tab.status.textContent(), /^Recovered \d+ missed notifications$/));

async function tour({ open, context, server }, name) {
    const tab = await open();
    await tab.button('echo').waitFor();
    await take(tab, `${name}-start`);
    await tab.select('add');
    await tab.button('Run').click();
    await take(tab, `${name}-problems`);
    await tab.select('json_schema_2020_12_tool');
    await take(tab, `${name}-form`);
    await (await tab.call('getTinyImage')).ended();
    await (await tab.call('mcp_apps_hello_world')).ended();
    await (await tab.call('test_error_handling')).ended();
    await take(tab, `${name}-results`);
    await (await tab.call('elicitInputs')).question.waitFor();
    await take(tab, `${name}-question`);
    const call = await tab.call(notifications, utility(60, 200, 'Importing'));
    await call.reaches(8);
    await take(tab, `${name}-running`);
    await tab.leave();
    const { belay_events_appended_total: before } = await server.metrics();
    await server.until((now) => now.belay_events_appended_total >= before + 6);
    await tab.comeBack();
    await recovered(tab);
    await take(tab, `${name}-recovered`);
    await context.setOffline(true);
    await tab.says('Reconnecting…');
    await take(tab, `${name}-reconnecting`);
    await tab.button('Disconnect').click();
    await tab.says('Disconnected');
    await take(tab, `${name}-disconnected`);
}

/** One call done, one running, after a pull of the plug. */
async function forTheDocumentation({ open }) {
    const tab = await open();
    await (await tab.call('longRunningOperation', { duration: 1, steps: 5 })).ended();
    const call = await tab.call(notifications, utility(30, 500, 'Importing batch'));
    // Without the form, both calls are in sight.
    await tab.page.keyboard.press('Escape');
    await tab.form.waitFor({ state: 'hidden' });
    await call.reaches(6);
    await tab.button('Pull the plug').click();
    await tab.says('Reconnecting…');
    await recovered(tab);
    await take(tab, 'console', process.env.BELAY_UPDATE_IMAGES ? documentation : pictures);
    assert.match(await tab.status.textContent(), /^Recovered/);
    assert.equal(await tab.page.getByRole('article').count(), 2);
    assert.ok(await call.cancel.isVisible(), 'one runs');
    assert.equal(await tab.results.count(), 1, 'one is done');
    const { height } = tab.page.viewportSize();
    for (const article of await tab.page.getByRole('article').all()) {
        const box = await article.boundingBox();
        assert.ok(box.y >= 0 && box.y + box.height <= height, 'both are in sight');
    }
}

const phone = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, hasTouch: true, isMobile: true };

scenarios('pictures', [
    ['light', { context: { colorScheme: 'light' }, expected: [broken] }, (world) => tour(world, 'light')],
    ['dark', { context: { colorScheme: 'dark' }, expected: [broken] }, (world) => tour(world, 'dark')],
    ['phone', { context: phone, expected: [broken] }, (world) => tour(world, 'phone')],
    ['for the documentation', { expected: [broken] }, forTheDocumentation],
]);
