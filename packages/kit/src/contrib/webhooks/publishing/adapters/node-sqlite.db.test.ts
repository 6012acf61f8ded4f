import { DatabaseSync } from 'node:sqlite';
import { describeForeignLibrary } from '../../../../../test/webhooks/foreign-library.ts';
import { sqliteLibrary } from '../../../../../test/webhooks/sqlite-library.ts';
import { nodeSqliteTransaction } from '../../../../db/engine/foreign/node-sqlite.ts';

describeForeignLibrary('node:sqlite', {
  dialects: ['sqlite'],
  tellsTransactionsApart: [],
  open: ({ path }) => {
    const database = new DatabaseSync(path);
    return sqliteLibrary(database, (options) => nodeSqliteTransaction(database, options));
  },
});
