import { defineConfig } from 'vite';
import { ADMIN_STYLE_NONCE } from '../kit/src/admin/wire/wire.ts';

/** Where a running application serves the admin site; `npm run dev` hands its API's requests on to it. */
const running = process.env['ADMIN_URL'] ?? 'http://127.0.0.1:3000/admin/';

export default defineConfig({
  root: import.meta.dirname,
  // Every address is relative: the site works below any prefix, and behind a proxy that adds its own.
  base: './',
  // The server puts a fresh value in its place with every page; style elements made by script carry it.
  html: { cspNonce: ADMIN_STYLE_NONCE },
  build: {
    target: 'es2023',
    // Data URLs would need a wider content security policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 800,
    rolldownOptions: {
      // The component kit marks every file for server components, of which there are none here.
      onLog: (level, log, report) => (log.code === 'MODULE_LEVEL_DIRECTIVE' ? undefined : report(level, log)),
    },
  },
  server: {
    host: '127.0.0.1',
    proxy: {
      '/api': {
        target: new URL(running).origin,
        rewrite: (path) => new URL(running).pathname.replace(/\/$/, '') + path,
        // The application compares the origin of unsafe requests with its own host.
        changeOrigin: true,
        headers: { origin: new URL(running).origin },
      },
    },
  },
});
