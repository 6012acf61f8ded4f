import { expect, test } from 'vitest';
import { createApp } from '../../src/app/assemble/create-app.ts';
import type { StartUpError } from '../../src/app/check/start-up-error.ts';
import { ApiKeyController, apiKeys, ServiceUserController } from '../../src/contrib/apikeys/index.ts';
import { audit, AuditController, TenantAuditController } from '../../src/contrib/audit/index.ts';

function faultsOf(LiveList: unknown): StartUpError['faults'] {
  try {
    createApp({
      database: 'sqlite::memory:',
      modules: [apiKeys(), audit()],
      mount: { '/v1': { '/list': LiveList as never } },
      log: { level: 'silent' },
    });
    return [];
  } catch (error) {
    return (error as StartUpError).faults;
  }
}

test.each([
  [ApiKeyController, 'Remove it. Options of ApiKeyController: grantableScopes, allowRateLimit.'],
  [ServiceUserController, 'Remove it.'],
  [AuditController, 'Remove it. Options of AuditController: using.'],
  [TenantAuditController, 'Remove it. Options of TenantAuditController: using.'],
])('the items of %o depend on other tables: an app that declares the list live does not start', (base, hint) => {
  class LiveList extends (base as unknown as typeof ApiKeyController) {
    static readonly live = true;
  }
  expect(faultsOf(LiveList)).toContainEqual(
    expect.objectContaining({ id: 'E002', message: `LiveList: ${base.name} has no option "live", which would be ignored.`, hint }),
  );
});
