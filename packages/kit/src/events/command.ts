import type { StandardSchemaV1 } from '@standard-schema/spec';
import { isSchema, type Schema, stepsOf } from '../db/values/standard-schema.ts';
import type { Database } from '../db/engine/db.ts';
import type { ServiceScope } from '../di/container.ts';
import { coreErrors } from '../errors/core-errors.ts';

/** What a command or query may use: the context of a route's handler and of a job fit. */
export interface OperationContext {
  readonly db: Database;
  readonly services: ServiceScope;
}

/** One operation of the application with its input's schema: a route points to it, and a job or a test calls the same one. */
export interface Operation<S extends Schema = Schema, Result = unknown, Context extends OperationContext = OperationContext> {
  readonly isOperation: true;
  readonly kind: 'command' | 'query';
  readonly schema: S;
  /** Checks the input, then runs the handler. Faults of the input are a 422. */
  execute(context: Context, input: StandardSchemaV1.InferInput<S>): Promise<Result>;
  /** Runs the handler with input that was checked already, as a route does it. */
  handle(context: Context, input: StandardSchemaV1.InferOutput<S>): Result | Promise<Result>;
}

type Handler<S extends Schema, Result, Context> = (input: StandardSchemaV1.InferOutput<S>, context: Context) => Result | Promise<Result>;

/** An operation that changes something. */
export function command<S extends Schema, Result, Context extends OperationContext = OperationContext>(
  schema: S,
  handler: Handler<S, Result, Context>,
): Operation<S, Result, Context> {
  return operation('command', schema, handler);
}

/** An operation that only reads. */
export function query<S extends Schema, Result, Context extends OperationContext = OperationContext>(
  schema: S,
  handler: Handler<S, Result, Context>,
): Operation<S, Result, Context> {
  return operation('query', schema, handler);
}

function operation<S extends Schema, Result, Context extends OperationContext>(
  kind: Operation['kind'],
  schema: S,
  handler: Handler<S, Result, Context>,
): Operation<S, Result, Context> {
  if (!isSchema(schema)) throw new TypeError(`${kind}(): the first argument is the schema of its input.`);
  if (typeof handler !== 'function') throw new TypeError(`${kind}(): the second argument is a function.`);
  const handle = (context: Context, input: StandardSchemaV1.InferOutput<S>): Result | Promise<Result> => handler(input, context);
  return Object.freeze({
    isOperation: true,
    kind,
    schema,
    handle,
    async execute(context: Context, input: StandardSchemaV1.InferInput<S>): Promise<Result> {
      const checked = await schema['~standard'].validate(input);
      if (checked.issues === undefined) return handle(context, checked.value as StandardSchemaV1.InferOutput<S>);
      throw coreErrors.validation_error({
        errors: checked.issues.map((issue) => ({
          location: ['input', ...stepsOf(issue)],
          code: issue.code ?? 'invalid',
          message: issue.message,
        })),
      });
    },
  });
}
