import { setTimeout as pause } from 'node:timers/promises';

/** The first outcome of `check` that is no error; its last error if there is none in time. A bound for a hang. */
export async function eventually(check, bound = 20_000) {
    const end = Date.now() + bound;
    for (;;) {
        try {
            return await check();
        } catch (error) {
            if (Date.now() > end)
                throw error;
        }
        await pause(50);
    }
}
