import react from '@vitejs/plugin-react';
import { defaultClientConditions, defineConfig } from 'vite';

export default defineConfig({
  plugins: [react()],
  // The other packages from their sources: the page needs no build of theirs.
  resolve: { conditions: ['belay-source', ...defaultClientConditions] },
  // The page is served under a policy that allows only files of its own: no inlined assets, no polyfill.
  build: { target: 'es2022', assetsInlineLimit: 0, chunkSizeWarningLimit: 700, modulePreload: { polyfill: false } },
  server: { proxy: { '/mcp': process.env['BELAY_SERVER'] ?? 'http://127.0.0.1:3000' } },
});
