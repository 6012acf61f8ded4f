import { afterEach, expect, test, vi } from 'vitest';
import { Controller } from '../../http/compile/controller.ts';
import { route } from '../../http/declare/route.ts';
import { allowAny } from '../../permissions/index.ts';
import { clientThrottle, userThrottle } from '../../throttle/index.ts';
import { createApp } from '../assemble/create-app.ts';

afterEach(() => vi.unstubAllEnvs());

class Counted extends Controller {
  list = route.get('/', { permission: allowAny, throttles: [clientThrottle('10/min')] }, () => undefined);
}
class ByUser extends Controller {
  list = route.get('/', { permission: allowAny, throttles: [userThrottle('10/min')] }, () => undefined);
}

const warnings = (controller: typeof Counted | typeof ByUser, options: object = {}) =>
  createApp({ database: 'sqlite::memory:', log: { level: 'silent' }, docs: false, mount: { '/v1': { '/x': controller } }, ...options })
    .warnings.filter(({ id }) => id === 'W014')
    .map(({ message }) => message);

test('W014: in production an app that counts client addresses says whether they are those of a proxy', () => {
  vi.stubEnv('TRUSTED_PROXIES', undefined);
  expect(warnings(Counted)).toEqual([]);
  vi.stubEnv('NODE_ENV', 'production');
  expect(warnings(Counted)).toEqual([
    'Requests and invalid keys are counted by client address, and no proxy is trusted: behind a proxy all clients share one address.',
  ]);
  expect(warnings(ByUser)).toEqual([]);
  expect(warnings(Counted, { trustedProxies: ['10.0.0.1'] })).toEqual([]);
  expect(warnings(Counted, { silencedChecks: { W014: 'nothing is in front of it' } })).toEqual([]);
  vi.stubEnv('TRUSTED_PROXIES', 'none');
  expect(warnings(Counted)).toEqual([]);
});
