// A server for the official conformance suite: routes that bear the names of its fixture tools, behind a credential that is everybody's, because the
// suite cannot send one. Prints its URL.
import { z } from 'zod';
import { createApp } from '../../../src/app/index.ts';
import type { Authenticator } from '../../../src/auth/index.ts';
import { accepted, acceptsJob, job, JobController, jobs, startJob } from '../../../src/contrib/jobs/index.ts';
import { mcp, type McpOptions } from '../../../src/contrib/mcp/index.ts';
import { migrateApp } from '../../../src/app/data/migration-modules.ts';
import { coreErrors } from '../../../src/errors/index.ts';
import { Controller, route } from '../../../src/http/index.ts';
import { isAuthenticated } from '../../../src/permissions/index.ts';

const everybody: Authenticator = {
  name: 'everybody',
  challenge: 'Bearer realm="api"',
  securityScheme: { type: 'http', scheme: 'bearer' },
  authenticate: () => ({
    user: { id: '1', username: 'suite', email: null, is_active: true, is_staff: false, is_superuser: false },
    scheme: 'everybody',
    scopes: null,
  }),
};

const slow = job('conformance.slow', {
  input: z.object({}),
  async run({ progress }) {
    for (const percent of [0, 50, 100]) {
      await progress(percent);
      await new Promise((done) => setTimeout(done, 300));
    }
  },
});

const Text = z.object({ text: z.string() });
const facts = { permission: isAuthenticated, response: Text } as const;

class SuiteController extends Controller {
  simpleText = route.get('/simple-text', { ...facts, tool: { name: 'test_simple_text' }, summary: 'Return a simple text' }, () => ({
    text: 'This is a simple text response for testing.',
  }));
  greet = route.post(
    '/greet',
    { ...facts, tool: { name: 'greet' }, summary: 'Greet somebody by name', body: z.object({ name: z.string() }) },
    ({ body }) => ({ text: `Hello, ${body.name}` }),
  );
  // Both must be silent beside their result: nothing is asked of the client, and nothing is logged to it.
  streaming = route.get('/streaming', { ...facts, tool: { name: 'test_streaming_elicitation' }, summary: 'Return a text' }, () => ({
    text: 'ok',
  }));
  logging = route.get('/logging', { ...facts, tool: { name: 'test_logging_tool' }, summary: 'Return a text' }, () => ({ text: 'ok' }));
  errorHandling = route.get('/error', { ...facts, tool: { name: 'test_error_handling' }, summary: 'Always fail' }, () => {
    throw coreErrors.conflict({ detail: 'This tool intentionally returns an error for testing' });
  });
  withProgress = route.post(
    '/progress',
    {
      ...acceptsJob,
      permission: isAuthenticated,
      tool: { name: 'test_tool_with_progress' },
      summary: 'Start a job that reports its progress',
    },
    ({ db, user }) => db.transaction(async (tx) => accepted(await startJob(tx, slow, {}, { owner: user.id }))),
  );
  schema = route.post(
    '/schema',
    {
      ...facts,
      tool: { name: 'json_schema_2020_12_tool' },
      summary: 'Take a structured address',
      body: z.object({
        name: z.string().optional(),
        address: z.object({ street: z.string().optional(), city: z.string().optional() }).optional(),
      }),
    },
    () => ({ text: 'ok' }),
  );
}

const prompts: McpOptions['prompts'] = [
  {
    name: 'test_simple_prompt',
    description: 'A simple prompt',
    permission: isAuthenticated,
    text: () => 'This is a simple prompt for testing.',
  },
  {
    name: 'test_prompt_with_arguments',
    description: 'A prompt with arguments',
    permission: isAuthenticated,
    arguments: { arg1: { description: 'First', required: true }, arg2: { description: 'Second', required: true } },
    text: ({ arg1, arg2 }) => `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`,
  },
];

const app = createApp({
  title: 'Conformance',
  version: '1.0.0',
  database: 'sqlite::memory:',
  authenticators: [everybody],
  modules: [jobs({ jobs: [slow], worker: true, pollIntervalMs: 50 }), mcp({ prompts })],
  mount: { '/v1': { '/suite': SuiteController, '/jobs': JobController } },
  log: { level: 'silent' },
});
await app.openDatabases();
await migrateApp(app);
const address = await app.listen({ port: 0 });
process.stdout.write(`${address}/mcp\n`);
