import { expect, test } from 'vitest';
import { createApp } from '../../app/assemble/create-app.ts';
import { Controller } from '../../http/compile/controller.ts';
import { route } from '../../http/declare/route.ts';
import { allowAny } from '../../permissions/index.ts';
import { sqlStorage } from '../../throttle/index.ts';
import { userThrottle } from '../../throttle/throttles.ts';
import { nodeVersion, throttleFindings } from './doctor.ts';

test('a Node that this version was not tested with is found', () => {
  for (const version of ['22.19.0', '24.15.0', '26.1.0']) expect(nodeVersion(version)).toMatchObject({ state: 'ok', detail: version });
  for (const version of ['20.20.2', '23.0.0', '28.0.0']) expect(nodeVersion(version)).toMatchObject({ id: 'W016', state: 'warning' });
});

test('throttles that each process counts for itself are found where several processes can share a database', () => {
  class Things extends Controller {
    list = route.get('/', { permission: allowAny, throttles: [userThrottle('10/min')] }, () => undefined);
  }
  const findings = (dialect: 'sqlite' | 'postgres', options: object = {}) => {
    const app = createApp({
      database: 'sqlite::memory:',
      mount: { '/v1': { '/things': Things } },
      settings: { trustedProxies: [] },
      log: { level: 'silent' },
      ...options,
    });
    const { routes, modules, settings, throttleStorage } = app;
    return throttleFindings({ routes, modules, settings, throttleStorage, db: { dialect } });
  };
  expect(findings('postgres')).toMatchObject([{ id: 'W015', state: 'warning' }]);
  expect(findings('postgres', { throttleStorage: sqlStorage() })).toEqual([]);
  expect(findings('sqlite')).toEqual([]);
});
