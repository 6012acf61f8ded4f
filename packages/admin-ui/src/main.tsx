import './first-styles.ts';
import './global.css';
import { localStorageColorSchemeManager, MantineProvider } from '@mantine/core';
import { QueryCache, QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { setNonce } from 'get-nonce';
import { createRoot } from 'react-dom/client';
import { toFault } from './api/fault.ts';
import { App } from './app.tsx';
import { CrashGuard } from './feedback/crash-guard.tsx';
import { Late } from './feedback/late.tsx';
import { Messages } from './feedback/messages.tsx';
import { isFramed } from './frame/host.ts';
import { SESSION } from './session/session-gate.tsx';
import { takeLink } from './session/take-link.ts';
import { cssVariables, theme } from './theme.ts';
import { later } from './later.ts';
import { printInLight } from './values/print-in-light.ts';

/** Style elements that script makes need the page's nonce: the component kit's own, and its scroll lock's. */
const nonce = document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce ?? '';
setNonce(nonce);

const schemes = localStorageColorSchemeManager({ key: 'kit-admin-colours' });

const queries = new QueryClient({
  queryCache: new QueryCache({
    // Whoever loses a right while a page is open is not shown any more what it was about. The session stays: it tells one person from the next.
    onError(error, query) {
      if (toFault(error).status === 403 && query.queryKey[0] !== SESSION[0]) query.setState({ data: undefined });
    },
  }),
  defaultOptions: {
    queries: {
      // What the server refused it will refuse again, and what took its time will take it again; a connection that broke is worth another try.
      // While the server is away, the bar asks again.
      retry: (failures, error) => failures < 1 && toFault(error).code === 'unreachable',
      networkMode: 'always',
      gcTime: 60_000,
    },
  },
});

const LinkPage = later(async () => (await import('./session/link-page.tsx')).LinkPage);
/** Taken out of the address before anything else runs: it must not stay in the history. */
const link = takeLink();

/** The page around a frame says how the frame looks. */
const asked = new URLSearchParams(window.location.search).get('theme');
const forced = isFramed && (asked === 'light' || asked === 'dark') ? ({ forceColorScheme: asked } as const) : {};

printInLight();

const root = document.getElementById('root');
if (root !== null) {
  createRoot(root).render(
    <MantineProvider
      theme={theme}
      cssVariablesResolver={cssVariables}
      defaultColorScheme="auto"
      colorSchemeManager={schemes}
      {...forced}
      getStyleNonce={() => nonce}
    >
      <QueryClientProvider client={queries}>
        <Messages />
        <CrashGuard>
          {link === null ? (
            <App />
          ) : (
            <Late>
              <LinkPage {...link} />
            </Late>
          )}
        </CrashGuard>
      </QueryClientProvider>
    </MantineProvider>,
  );
}
