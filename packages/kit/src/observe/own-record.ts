const OWN = Symbol('kit.ownRecord');

/** Marks a log record of the toolkit: its members are its own, whatever an application's schemas call sensitive. */
export function ownRecord<R extends object>(record: R): R {
  return Object.assign(record, { [OWN]: true });
}

export function isOwnRecord(record: object): boolean {
  return OWN in record;
}
