import type { AuditEntry, AuditSink } from '../../../auth/request/audit-sink.ts';
import type { UserChangeListener } from '../../../app/declare/registry.ts';
import type { Clock } from '../../../db/clock.ts';
import { InvalidOptions, objectOf, optionFaults, type OptionRules } from '../../../options/read-options.ts';
import { aFunction, anything, clock, listOf, nullable, objectWith, required, wholeNumber } from '../../../options/value-rule.ts';
import type { PasswordCost } from './password.ts';

/** What changing users takes besides a database: the time, the wanted hash cost, and where to record it. */
export interface UserManagement {
  /** The time of the change. */
  readonly clock: Clock;
  /** How much work a password hash is. */
  readonly passwordCost: PasswordCost;
  /** Where the change is recorded; null: nowhere. */
  readonly audit: AuditSink | null;
  /** Called in the transaction when a user is activated, deactivated, deleted, or made staff. */
  readonly userChanges?: readonly UserChangeListener[];
  /** Who makes the change, for the audit entry. */
  readonly actor?: AuditEntry['actor'];
  /** The request that asked for the change, for the audit entry. */
  readonly requestId?: string | null;
}

const managementRules: OptionRules<UserManagement> = {
  clock: required(clock),
  passwordCost: required(
    objectOf<PasswordCost>({ logN: required(wholeNumber(1)), r: required(wholeNumber(1)), p: required(wholeNumber(1)) }),
  ),
  audit: required(nullable(objectWith('an audit sink, or null', 'record'))),
  userChanges: listOf(aFunction),
  actor: anything,
  requestId: anything,
};

/** What a caller leaves out would be missing in the audit trail: it says so. */
export function checkManagement(place: string, given: UserManagement): void {
  const faults = optionFaults(place, given, managementRules);
  const hint = 'accountsOf(db).management(actor) has everything.';
  if (faults.length > 0) throw new InvalidOptions(faults.map(({ id, message, hint: own = hint }) => ({ id, message, hint: own })));
}
