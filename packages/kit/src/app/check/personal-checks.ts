import { ENCRYPTION_CHECKS, UNENCRYPTED_CHECKS } from './encryption-checks.ts';

/** Checks of what models say about people. */
const PERSONAL_CHECKS = {
  W040: {
    title: 'A table does not say whose its rows are',
    explanation:
      'Rows of a resource have an owner, and the model does not say what erasing that user does to them; or rows refer to rows that would be erased and keep them from it. The export and the erasure of a person leave such rows out, or stop at them. `kit check` reports it; with `personalData()` or `tenants()` an erasure that cannot end stops the start (E038).',
    remedy:
      "Say it on the column: `owner_id: t.uuid().person()` deletes the rows, `.person({ erase: 'anonymise' })` keeps them without their personal columns, `.person({ erase: 'unlink' })` removes the id alone.",
  },
  W041: {
    title: 'A column looks personal and says nothing',
    explanation:
      'The name of a column says that it describes a person, such as `email` or `birthday`, and the model does not mark it: it is not replaced where the person is erased and the row stays. `kit check` reports it.',
    remedy: 'Mark it with `.personal()`. Silence the check with a reason where the names are not of people.',
  },
  W042: {
    title: 'Retention is declared, and nothing applies it',
    explanation:
      'A model has a `retention`, and the app does not have `personalData()`: its rows stay until somebody runs `kit retention run`. `kit check` reports it.',
    remedy:
      'Add `personalData()` to the modules of `createApp()`. Silence the check with a reason where a schedule of your own runs the command.',
  },
} as const;

/** What keeps an erasure from its end. */
const ERASURE_CHECKS = {
  E038: {
    title: 'A person or a tenant cannot be erased',
    explanation:
      'The app has `personalData()` or `tenants()`, and the models do not allow an erasure to end: rows that stay refer to rows that go, a column of a row that stays can neither become NULL nor has another value, or a column that says `.person()` or `.tenant()` refers to rows of nobody.',
    remedy:
      'The message names the columns. Say `.person(…)` or `.tenant(…)` on the reference, or what the value becomes: `.personal({ erased: … })`.',
  },
} as const;

/** Checks of what columns say about their data. */
export const DATA_CHECKS = { ...ENCRYPTION_CHECKS, ...ERASURE_CHECKS } as const;
export const DATA_WARNINGS = { ...UNENCRYPTED_CHECKS, ...PERSONAL_CHECKS } as const;
