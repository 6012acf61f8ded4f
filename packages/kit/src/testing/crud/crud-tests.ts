import { readOptions, requireArguments } from '../../options/read-options.ts';
import { aFunction, either, filledText, objectWith, required } from '../../options/value-rule.ts';
import { describeDatabases, PREPARE_MS, type TestDatabase } from '../databases.ts';
import { runningVitest } from '../running-vitest.ts';
import type { TestClient } from '../test-callers.ts';
import type { TestApp } from '../test-app.ts';
import { crudChecks } from './checks.ts';
import { type CrudCallers, CrudSubject } from './subject.ts';

export interface CrudTestsOptions {
  /** Starts the application on the database of the block: `(database) => testApp({ database: database.db, … })`. */
  readonly app: (database: TestDatabase) => Promise<TestApp>;
  /** The owner of rows, and callers who must not see them; each with the tenant that its requests name. A function where the app creates them. */
  readonly callers: CrudCallers | ((app: TestApp) => CrudCallers | Promise<CrudCallers>);
  /** A valid body for a new row, another one for each number; `owner` makes the row that it refers to. Default: `sample()` of the create schema, required members only. */
  readonly input?: (number: number, app: TestApp, owner: TestClient) => object | Promise<object>;
  /** Makes a row of the owner and returns its key, where there is no create operation. */
  readonly make?: (number: number, app: TestApp) => Promise<string>;
  /** The address, where the controller is below a parent: `/v1/projects/…/tasks`. */
  readonly path?: string;
}

/**
 * Defines the guarantees of `kit/crud` as tests of your own resource, on both databases: what a stranger can tell, that lists are walked
 * completely, that no change is lost. What the controller does not offer is not tested.
 */
export function crudTests(controller: abstract new () => object, options: CrudTestsOptions): void {
  requireArguments('crudTests()', { controller }, { controller: aFunction });
  const {
    app: start,
    callers,
    ...rest
  } = readOptions('crudTests()', options, {
    app: required(aFunction),
    callers: required(either('callers: { owner, stranger }, or a function of the app', aFunction, objectWith('{ owner, stranger }'))),
    input: aFunction,
    make: aFunction,
    path: filledText,
  });
  const { afterAll, beforeAll, test } = runningVitest('crudTests()');
  describeDatabases(`${controller.name} keeps the guarantees of a resource`, (database) => {
    let app: TestApp | undefined;
    let subject: CrudSubject | undefined;
    beforeAll(async () => {
      app = await start(database);
      subject = new CrudSubject(app, controller, { ...rest, callers: typeof callers === 'function' ? await callers(app) : callers });
    }, PREPARE_MS);
    afterAll(() => app?.close());

    for (const { name, appliesTo, run } of crudChecks) {
      test(name, async ({ skip }) => {
        if (subject === undefined) return;
        if (!appliesTo(subject)) skip('The controller does not offer this.');
        await run(subject);
      });
    }
  });
}
