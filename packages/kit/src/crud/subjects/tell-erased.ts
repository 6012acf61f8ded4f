import type { App } from '../../app/declare/module.ts';
import type { Model } from '../../db/declare/model.ts';
import { announceTableWrite } from '../../db/rows/table-writes.ts';
import type { AfterErase } from '../../db/subjects/erase-rows.ts';
import { policiesOf } from '../policy/policies.ts';
import { logErased, logTouched } from '../write/change-log.ts';

/** Erased rows leave open live lists and caches when the transaction commits. No value of theirs is logged for that. */
export function tellErased(app: App): AfterErase {
  return async (tx, model, rows, changed) => {
    await announceTableWrite(tx, model.name);
    const policy = policiesOf(app).find(model);
    if (policy?.isLogged === true && tx.database === app.db) {
      // Streams are found by the owner and the tenant of a row, which never change otherwise.
      const { key, bounds } = policy;
      const isFound = changed?.every((name) => name !== key.name && name !== bounds.owner && name !== bounds.tenant);
      if (isFound === true) {
        const keys = rows.map((row) => row[key.name]);
        await logTouched(tx, policy, keys);
      } else await logErased(tx, policy);
    }
    // Their lists cannot be live: nobody knows which rows the database changes.
    if (changed === null) for (const below of tablesBelow(app, model)) await announceTableWrite(tx, below);
  };
}

/** Those in whose rows the database writes NULL when a row of the model is deleted. */
function tablesBelow(app: App, { name: table }: Model): string[] {
  return app.modules
    .flatMap(({ models = [] }) => models)
    .filter(({ name, columns }) =>
      Object.values(columns).some(({ settings: { reference } }) => {
        if (name === table || reference === undefined || reference.isConstrained === false || reference.onDelete !== 'set null')
          return false;
        return (typeof reference.target === 'string' ? reference.target : reference.target().name) === table;
      }),
    )
    .map(({ name }) => name);
}
