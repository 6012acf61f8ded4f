-- What `prisma migrate` makes of schema.prisma.
create table orders (id uuid primary key, owner_id text not null, item text not null, quantity integer not null, note text, status text not null default 'open', created_at timestamptz(3) not null, updated_at timestamptz(3) not null);
create index on orders (owner_id, status, id desc);
create table audit_entries (id uuid primary key, at timestamptz(3) not null, actor_id text not null, key_id text not null, action text not null, order_id uuid not null, before jsonb, after jsonb);
create index on audit_entries (order_id);
create table idempotency_keys (owner_id text not null, key text not null, digest text not null, response jsonb not null, created_at timestamptz(3) not null, primary key (owner_id, key));
create table endpoints (id uuid primary key, owner_id text not null, url text not null, secret text not null);
create index on endpoints (owner_id);
create table "user" (id text primary key, name text not null, email text not null unique, "emailVerified" boolean not null default false, image text, "createdAt" timestamp(3) not null default now(), "updatedAt" timestamp(3) not null);
create table session (id text primary key, "expiresAt" timestamp(3) not null, token text not null unique, "createdAt" timestamp(3) not null default now(), "updatedAt" timestamp(3) not null, "ipAddress" text, "userAgent" text, "userId" text not null references "user" (id) on delete cascade);
create index on session ("userId");
create table account (id text primary key, "accountId" text not null, "providerId" text not null, "userId" text not null references "user" (id) on delete cascade, "accessToken" text, "refreshToken" text, "idToken" text, "accessTokenExpiresAt" timestamp(3), "refreshTokenExpiresAt" timestamp(3), scope text, password text, "createdAt" timestamp(3) not null default now(), "updatedAt" timestamp(3) not null);
create index on account ("userId");
create table verification (id text primary key, identifier text not null, value text not null, "expiresAt" timestamp(3) not null, "createdAt" timestamp(3) not null default now(), "updatedAt" timestamp(3) not null);
create index on verification (identifier);
create table apikey (id text primary key, "configId" text not null default 'default', name text, start text, "referenceId" text not null, prefix text, key text not null, "refillInterval" integer, "refillAmount" integer, "lastRefillAt" timestamp(3), enabled boolean default true, "rateLimitEnabled" boolean default true, "rateLimitTimeWindow" integer default 86400000, "rateLimitMax" integer default 10, "requestCount" integer default 0, remaining integer, "lastRequest" timestamp(3), "expiresAt" timestamp(3), "createdAt" timestamp(3) not null, "updatedAt" timestamp(3) not null, permissions text, metadata text);
create index on apikey ("configId");
create index on apikey ("referenceId");
create index on apikey (key);
