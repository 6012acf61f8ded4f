import type { AppOptions } from 'kit';
import { AccountController, accounts } from 'kit/contrib/accounts';
import { ApiKeyController, ApiKeyRateThrottle, apiKeys } from 'kit/contrib/apikeys';
import { HealthController, requestId, requestLog, securityHeaders } from 'kit/middleware';
import { clientThrottle } from 'kit/throttle';
import { NoteController, noteModule } from './notes.ts';
import { demo } from './seeds.ts';

/** The application without its database: kit.config.ts and the tests each add theirs. */
export const appOptions: AppOptions = {
  title: '{{name}}',
  version: '0.1.0',
  modules: [accounts(), apiKeys(), noteModule()],
  seeds: [demo],
  middleware: [requestId(), requestLog(), securityHeaders()],
  throttles: [clientThrottle('600/min'), ApiKeyRateThrottle('300/min')],
  mount: {
    '/v1': { '/account': AccountController, '/api-keys': ApiKeyController, '/notes': NoteController },
    '/': { '/health': HealthController },
  },
};
