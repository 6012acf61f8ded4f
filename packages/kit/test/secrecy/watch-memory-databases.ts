import { DatabaseSync } from 'node:sqlite';

/** Shows every SQLite database that is not in a file before it is closed, and with that gone. */
export function watchMemoryDatabases(inspect: (database: DatabaseSync) => void): void {
  const shared = DatabaseSync.prototype;
  const close = Reflect.get(shared, 'close');
  shared.close = function inspected() {
    if (this.isOpen && this.location() === null) inspect(this);
    close.call(this);
  };
}
