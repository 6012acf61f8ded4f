-- What drizzle-kit makes of schema.ts.
create table users (id uuid primary key, name text not null unique);
create table api_keys (id uuid primary key, user_id uuid not null references users (id), digest text not null unique, revoked_at timestamptz);
create table orders (id uuid primary key, owner_id uuid not null, item text not null, quantity integer not null, note text, status text not null default 'open', created_at timestamptz not null, updated_at timestamptz not null);
create index on orders (owner_id, status, id desc);
create table audit_entries (id uuid primary key, at timestamptz not null, actor_id uuid not null, key_id uuid not null, action text not null, order_id uuid not null, before jsonb, after jsonb);
create index on audit_entries (order_id);
create table idempotency_keys (owner_id uuid not null, key text not null, digest text not null, response jsonb not null, created_at timestamptz not null, primary key (owner_id, key));
create table endpoints (id uuid primary key, owner_id uuid not null, url text not null, secret text not null);
create index on endpoints (owner_id);
