import '@mantine/core/styles.css';
import '@mantine/notifications/styles.css';
import 'mantine-datatable/styles.css';
import './global.css';
import { localStorageColorSchemeManager, MantineProvider } from '@mantine/core';
import { Notifications } from '@mantine/notifications';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { setNonce } from 'get-nonce';
import { lazy, Suspense } from 'react';
import { createRoot } from 'react-dom/client';
import { toFault } from './api/fault.ts';
import { App } from './app.tsx';
import { takeLink } from './session/take-link.ts';
import { cssVariables, theme } from './theme.ts';

/** Style elements that script makes need the page's nonce: the component kit's own, and its scroll lock's. */
const nonce = document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce ?? '';
setNonce(nonce);

const schemes = localStorageColorSchemeManager({ key: 'kit-admin-colours' });

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      // What the server refused it will refuse again; only a lost connection or a server in trouble is worth another try.
      retry: (failures, error) => failures < 2 && isPassing(toFault(error).status),
      networkMode: 'always',
      gcTime: 60_000,
    },
  },
});

function isPassing(status: number): boolean {
  return status === 0 || status === 502 || status === 503 || status === 504;
}

const LinkPage = lazy(async () => ({ default: (await import('./session/link-page.tsx')).LinkPage }));
/** Taken out of the address before anything else runs: it must not stay in the history. */
const link = takeLink();

const root = document.getElementById('root');
if (root !== null) {
  createRoot(root).render(
    <MantineProvider
      theme={theme}
      cssVariablesResolver={cssVariables}
      defaultColorScheme="auto"
      colorSchemeManager={schemes}
      getStyleNonce={() => nonce}
    >
      <QueryClientProvider client={queries}>
        {/* Below dialogs (200): a message never covers what is being asked. */}
        <Notifications position="bottom-right" limit={1} zIndex={150} />
        {link === null ? (
          <App />
        ) : (
          <Suspense>
            <LinkPage {...link} />
          </Suspense>
        )}
      </QueryClientProvider>
    </MantineProvider>,
  );
}
