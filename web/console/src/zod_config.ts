// Before zod is loaded: it tries whether `new Function` works, which the page's policy would report as a violation.
Object.assign(globalThis, { __zod_globalConfig: { jitless: true } });
