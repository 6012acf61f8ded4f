import { PrismaBetterSqlite3 } from '@prisma/adapter-better-sqlite3';
import { PrismaPg } from '@prisma/adapter-pg';
import { getPrismaClient, type GetPrismaClientConfig } from '@prisma/client/runtime/client';
import type { PrismaTransaction } from '../../../src/db/engine/foreign/prisma.ts';
import type { Dialect } from '../../../src/db/index.ts';
import orders from './orders.json' with { type: 'json' };

// Prisma's client is its runtime and the schema's tables as `prisma generate` writes them into the application. The
// command and what it brings (a database server, a browser application) would be a third of all our packages, so what
// it makes of this schema is kept in orders.json.
const SCHEMA = (provider: string): string => `datasource db {
  provider = "${provider}"
}

model Order {
  id    Int    @id
  total String

  @@map("orders")
}
`;

export interface OrderTransaction extends PrismaTransaction {
  readonly order: { create(input: { data: { id: number; total: string } }): Promise<unknown> };
  $transaction<T>(work: (tx: OrderTransaction) => Promise<T>): Promise<T>;
}

export interface OrderClient extends OrderTransaction {
  $connect(): Promise<void>;
  $disconnect(): Promise<void>;
}

// Neither has types: Prisma's generated code is not checked.
const { WebAssembly } = globalThis as unknown as { WebAssembly: { Module: new (bytes: Uint8Array) => never } };
const runtimePart = (name: string): Promise<{ wasm: string }> =>
  import(import.meta.resolve(`@prisma/client/runtime/query_compiler_fast_bg.${name}.mjs`)) as Promise<{ wasm: string }>;

export function openPrisma(dialect: Dialect, url: string): OrderClient {
  const provider = dialect === 'postgres' ? 'postgresql' : 'sqlite';
  const config: unknown = {
    ...orders,
    previewFeatures: [],
    clientVersion: '7.10.0',
    engineVersion: '7.10.0',
    activeProvider: provider,
    inlineSchema: SCHEMA(provider),
    compilerWasm: {
      getRuntime: () => runtimePart(provider),
      getQueryCompilerWasmModule: async () =>
        new WebAssembly.Module(Buffer.from((await runtimePart(`${provider}.wasm-base64`)).wasm, 'base64')),
      importName: './query_compiler_fast_bg.js',
    },
  };
  const Client = getPrismaClient(config as GetPrismaClientConfig);
  const adapter = dialect === 'postgres' ? new PrismaPg({ connectionString: url }) : new PrismaBetterSqlite3({ url });
  return new Client({ adapter }) as unknown as OrderClient;
}
