import { migration } from '../../migration.ts';
import { sql } from '../../operation.ts';

const COLUMNS = 'position, xid, token, resource, key, kind, prior, at';

/**
 * On SQLite the position of a change is the number of its row: without an index beside it, a write of a live list costs half as much more. It has 64 bits, as a
 * `bigint` has. Triggers write the table by its name, so that no table is renamed to it.
 */
export const changesInOrder = migration('0008_changes_in_order', [
  sql({
    postgres: [],
    sqlite: [
      `create table kit_changes_before as select ${COLUMNS} from kit_changes`,
      'drop table kit_changes',
      `create table "kit_changes" (
  "position" integer primary key not null constraint "kit_changes_position_check" check (typeof("position") in ('integer', 'null')),
  "xid" bigint not null constraint "kit_changes_xid_check" check (typeof("xid") in ('integer', 'null')),
  "token" integer not null constraint "kit_changes_token_check" check ("token" between -2147483648 and 2147483647),
  "resource" text not null constraint "kit_changes_resource_check" check (length("resource") <= 200),
  "key" text not null constraint "kit_changes_key_check" check (length("key") <= 1000),
  "kind" enum_text not null constraint "kit_changes_kind_check" check ("kind" in ('created', 'changed', 'touched')),
  "prior" json_text constraint "kit_changes_prior_check" check (json_valid("prior")),
  "at" timestamp_text not null
)`,
      `insert into kit_changes (${COLUMNS}) select ${COLUMNS} from kit_changes_before`,
      'drop table kit_changes_before',
    ],
  }),
]);
