import { expect, test } from 'vitest';
import { createApp } from '../../src/app/assemble/create-app.ts';
import type { StartUpError } from '../../src/app/check/start-up-error.ts';
import { ApiKeyController, apiKeys, ServiceUserController } from '../../src/contrib/apikeys/index.ts';
import { apiKeyResource } from '../../src/contrib/apikeys/resource.ts';
import { audit, AuditController } from '../../src/contrib/audit/index.ts';
import { STAFF } from '../../src/crud/declare/resource.ts';
import { CrudController } from '../../src/crud/index.ts';
import { isStaff } from '../../src/permissions/index.ts';

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

test('the roles of service users are in other tables: an app that declares their list live does not start', () => {
  class LiveList extends ServiceUserController {
    static readonly live = true;
  }
  const message = 'LiveList: ServiceUserController has no option "live", which would be ignored.';
  expect(faultsOf(LiveList)).toContainEqual(expect.objectContaining({ id: 'E002', message, hint: 'Remove it.' }));
});

test('a state is followed where the list has the rows of one owner, and not where it has those of a tenant or of staff', () => {
  const operations = { create: false, update: false, partialUpdate: false, destroy: false, rotate: false } as const;
  class StaffKeys extends CrudController(apiKeyResource, {
    permission: isStaff,
    audience: STAFF,
    output: ['id', 'state'],
    operations,
    live: true,
  }) {}
  const problem = 'the field "state" depends on other records, or on the time';
  expect(faultsOf(StaffKeys)).toContainEqual(
    expect.objectContaining({ id: 'E035', message: `StaffKeys: the list cannot be live: ${problem}.` }),
  );
  class WithoutState extends CrudController(apiKeyResource, {
    permission: isStaff,
    audience: STAFF,
    output: ['id', 'state'],
    operations,
    live: true,
    liveWithout: ['state'],
  }) {}
  expect(faultsOf(WithoutState).map(({ id }) => id)).not.toContain('E035');
});

test('a handler around a live list is around its stream, too, or the app does not start', () => {
  class Wrapped extends ApiKeyController {
    static override readonly live = true;
    override list = this.wrap('list', {}, (_, next) => next());
  }
  expect(faultsOf(Wrapped)).toContainEqual(
    expect.objectContaining({ id: 'E035', message: expect.stringContaining('a handler is around its list') }),
  );
  class WrappedTwice extends AuditController {
    static override readonly live = true;
    override list = this.wrap('list', { alsoStream: true }, (_, next) => next());
  }
  expect(faultsOf(WrappedTwice).map(({ id }) => id)).not.toContain('E035');
  class WrappedOver extends Wrapped {
    override list = this.wrap('list', { alsoStream: true }, (_, next) => next());
  }
  expect(faultsOf(WrappedOver).map(({ id }) => id)).toContain('E035');
});
