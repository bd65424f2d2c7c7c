import { defaultServerConditions } from 'vite';
import { defineConfig } from 'vitest/config';

const conditions = ['belay-source', ...defaultServerConditions];

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: { include: ['*/tests/**/*.test.{ts,tsx}'], testTimeout: 30_000, hookTimeout: 30_000 },
});
