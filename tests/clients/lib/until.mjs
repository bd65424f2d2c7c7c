import { once } from 'node:events';

/** Waits until the condition holds; each 'change' of the emitter makes it look again. */
export async function until(emitter, condition) {
    // Far more than any scenario takes: a bound for a hang, so that the test says what it waited for.
    const signal = AbortSignal.timeout(60_000);
    while (!condition()) {
        try {
            await once(emitter, 'change', { signal });
        } catch {
            throw new Error(`waited in vain for ${condition}`);
        }
    }
}
