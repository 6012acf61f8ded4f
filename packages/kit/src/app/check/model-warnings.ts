import type { Fault } from '../../options/fault.ts';
import type { App } from '../declare/module.ts';

/** W018: a unique value of a soft-deleted row can never be used again, where the index also counts deleted rows. */
export function modelWarnings(app: App): Fault[] {
  return app.modules.flatMap(({ models = [] }) =>
    models
      .filter(({ table }) => table.columns['deleted_at']?.kind === 'timestamp')
      .flatMap(({ table }) =>
        table.indexes
          .filter(({ unique, where }) => unique && where === undefined)
          .map(({ name, columns }) => ({
            id: 'W018',
            message: `the unique index ${name} of ${table.name} (${columns.join(', ')}) also counts soft-deleted rows.`,
            hint: `Make it partial: { columns: [${columns.map((each) => `'${each}'`).join(', ')}], unique: true, where: 'deleted_at is null' }, or use softDeleteUnique().`,
          })),
      ),
  );
}
