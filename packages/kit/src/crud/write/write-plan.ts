import type { Item } from '../declare/item.ts';
import type { Policy } from '../policy/policy.ts';
import type { Intent, Verb } from './intent.ts';
import { isRecorded, type Recorders } from './record-changes.ts';

/** Which hook a verb has. */
const HOOK: Readonly<Record<Verb, 'create' | 'update' | 'destroy' | 'transition' | undefined>> = {
  create: 'create',
  update: 'update',
  destroy: 'destroy',
  transition: 'transition',
  restore: undefined,
  action: undefined,
};

/** What a write of a resource has to do besides its statement: decided once per mounted resource. */
export class WritePlan {
  readonly #policy: Policy;
  /** True when a rule says who may write a column. */
  readonly hasWriteRules: boolean;
  /** True when a listener, the audit log or events need the changed row. */
  readonly isRecorded: boolean;
  /** True when the writer logs changes, because no trigger does. */
  readonly isLogged: boolean;
  /** True when one of these needs the changed row. */
  readonly isWatched: boolean;

  constructor(policy: Policy, recorders: Recorders) {
    this.#policy = policy;
    const { fields = {}, onChange } = policy.options;
    this.hasWriteRules = Object.values(fields).some((rule) => rule?.writableBy !== undefined);
    this.isRecorded = onChange !== undefined || isRecorded(policy, recorders);
    this.isLogged = policy.isLogged && !policy.isTriggered;
    this.isWatched = this.isRecorded || this.isLogged;
  }

  /** True when the rules of the resource are asked about the values. */
  validates(verb: Verb): boolean {
    return this.#policy.options.validate !== undefined && (verb === 'create' || verb === 'update');
  }

  /** True when a write may move a row out of the caller's sight. Tenant and owner never change. */
  mayLeaveScope(): boolean {
    const { rows, access } = this.#policy.options;
    return rows !== undefined || access !== undefined || this.#policy.audienceRule !== undefined;
  }

  hookOf(verb: Verb): unknown {
    const hook = HOOK[verb];
    return hook === undefined ? undefined : this.#policy.options.hooks?.[hook];
  }

  /** True when a value is bound to its row: each row gets a ciphertext of its own. */
  writesEncrypted(values: Item): boolean {
    const { encrypted, replacing } = this.#policy.statements;
    return encrypted.some(({ name }) => values[name] !== undefined) || replacing.some(({ plain }) => values[plain] !== undefined);
  }

  /** Rows that go with a deletion, or come back with a restored one. */
  get cascades(): boolean {
    return (this.#policy.softDelete?.cascade.length ?? 0) > 0;
  }

  /**
   * `statement`: the write is one statement, because nothing needs the row before, after or beside it; `update … where key and scope returning …`.
   * with its line of the change log. `transaction`: all steps. The only place that decides it. `isChecked`: what was sent needs a look at the row or at other rows.
   */
  formOf({ verb, rows, action, asked = {} }: Intent, isChecked: boolean): 'statement' | 'transaction' {
    const { authorize, valuesOfRow, children, present } = asked;
    const [only, ...others] = rows;
    if (only === undefined || others.length > 0 || isChecked || verb === 'restore' || verb === 'action') return 'transaction';
    if (this.isRecorded || this.mayLeaveScope() || this.hookOf(verb) !== undefined || this.#policy.options.writes === 'verbs')
      return 'transaction';
    if (authorize !== undefined || valuesOfRow !== undefined || children !== undefined || present?.isDeep === true) return 'transaction';
    if (verb === 'destroy' && this.cascades) return 'transaction';
    if (verb === 'update' && (Object.keys(only.values).length === 0 || this.writesEncrypted(only.values))) return 'transaction';
    return action !== undefined && this.#asksRow(action.name) ? 'transaction' : 'statement';
  }

  #asksRow(transition: string): boolean {
    const rule = this.#policy.options.transitions?.[transition];
    return rule?.guard !== undefined || rule?.input !== undefined;
  }
}
