import type { App } from '../../app/declare/module.ts';
import { requiredDatabase } from '../../app/declare/required-database.ts';
import { requiredModule } from '../../app/declare/required-module.ts';
import { filter } from '../../crud/declare/filter.ts';
import { STAFF } from '../../crud/declare/resource.ts';
import { CrudController } from '../../crud/serve/controller.ts';
import { databaseNamed } from '../../db/open/named-database.ts';
import { IDENTITY_LENGTH_MAX } from '../../db/values/identity-length.ts';
import { controllerOptions } from '../../http/declare/controller-options.ts';
import type { HandlerContext } from '../../http/declare/handler-context.ts';
import { jsonSchema } from '../../http/declare/json-schema.ts';
import type { Fault } from '../../options/fault.ts';
import { filledText } from '../../options/value-rule.ts';
import { hasScopes, isStaff } from '../../permissions/built-ins.ts';
import { all } from '../../permissions/permission.ts';
import { EntryTime } from './serve/entry-time.ts';
import { auditResource } from './serve/resource.ts';
import { sealBeforeReading } from './chain/seal.ts';

const text = jsonSchema<string>({ type: 'string', minLength: 1, maxLength: IDENTITY_LENGTH_MAX });

const Entries = CrudController(auditResource, {
  permission: all(isStaff, hasScopes({ allowUnscoped: true })),
  scope: 'audit',
  audience: STAFF,
  lookup: 'id',
  filters: {
    actor_id: filter(text, (id) => ({ actor_id: id })),
    credential_id: filter(text, (id) => ({ credential_id: id })),
    action: filter(text, (action) => ({ action }), { description: 'For example `api_key.revoked`.' }),
    target_type: filter(text, (type) => ({ target_type: type })),
    target_id: filter(text, (id) => ({ target_id: id })),
    request_id: filter(text, (id) => ({ request_id: id })),
    since: filter(EntryTime, (at) => ({ at: { gte: at } }), { description: 'At this time or later.' }),
    until: filter(EntryTime, (at) => ({ at: { lt: at } }), { description: 'Before this time.' }),
  },
  queryMethod: false,
  ordering: { by: ['seq'], default: ['-seq'] },
  page: { default: 50, max: 100, count: 'exact' },
  operations: { retrieve: { field: 'read' }, create: false, update: false, partialUpdate: false, destroy: false },
});

/** Staff reads the entries, with the values of records that they may see, by session or by a key with the scope `audit:read`. Nothing can be written. */
export class AuditController extends Entries {
  static override readonly tags: readonly string[] = ['audit'];
  /** The database whose entries are read. */
  static readonly using: string = 'default';
  static readonly [controllerOptions] = { using: filledText };

  override list = this.wrap('list', { summary: 'List audit entries, newest first' }, (context, next) => this.#sealed(context, next));
  override read = this.wrap('read', {}, (context, next) => this.#sealed(context, next));

  async #sealed<R>({ databases }: Pick<HandlerContext, 'databases'>, read: () => Promise<R>): Promise<R> {
    const { using, name } = this.constructor as typeof AuditController;
    await sealBeforeReading(databaseNamed(databases, using, `${name}.using`));
    return read();
  }

  override faults(app: App): readonly Fault[] {
    return [...requiredModule(app, 'audit', this.constructor.name, 'audit()'), ...super.faults(app)];
  }

  override async databaseFaults(app: App): Promise<readonly Fault[]> {
    const { using, name } = this.constructor as typeof AuditController;
    const faults = requiredDatabase(app, 'audit', name, using, 'audit');
    return faults.length > 0 ? faults : super.databaseFaults(app);
  }
}
