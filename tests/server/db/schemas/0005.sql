BEGIN TRANSACTION;
CREATE TABLE accounts (
	owner TEXT NOT NULL, 
	balance BIGINT, 
	spent BIGINT NOT NULL, 
	CONSTRAINT pk_accounts PRIMARY KEY (owner), 
	CONSTRAINT fk_accounts_owner FOREIGN KEY(owner) REFERENCES namespaces (name)
);
INSERT INTO "accounts" VALUES('root',NULL,0);
INSERT INTO "accounts" VALUES('ada',5999997,3);
INSERT INTO "accounts" VALUES('robots',0,0);
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0005');
CREATE TABLE attempt_secrets (
	run_id TEXT NOT NULL, 
	attempt INTEGER NOT NULL, 
	sealed BLOB NOT NULL, 
	CONSTRAINT pk_attempt_secrets PRIMARY KEY (run_id, attempt), 
	CONSTRAINT fk_attempt_secrets_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "attempt_secrets" VALUES('run-6e71ae1949',1,X'7365616C6564');
CREATE TABLE calls (
	id TEXT NOT NULL, 
	at DOUBLE NOT NULL, 
	owner TEXT NOT NULL, 
	user TEXT NOT NULL, 
	run_id TEXT, 
	model TEXT NOT NULL, 
	provider TEXT NOT NULL, 
	input_tokens BIGINT NOT NULL, 
	output_tokens BIGINT NOT NULL, 
	cached_tokens BIGINT NOT NULL, 
	cost BIGINT, is_estimate BOOLEAN DEFAULT 0 NOT NULL, 
	CONSTRAINT pk_calls PRIMARY KEY (id)
);
INSERT INTO "calls" VALUES('3706830ed58b84e6eaaa',1.79485058449060511584e+09,'ada','ada',NULL,'parrot','scripted',1,1,0,3,0);
CREATE TABLE "creations" (
	caller TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	response BLOB NOT NULL, 
	at DOUBLE NOT NULL, 
	CONSTRAINT pk_creations PRIMARY KEY (caller, "key")
);
INSERT INTO "creations" VALUES('b1ff8b823c','robots',X'012BA60CF403953073CEFA3F0899A7779E3A75E320182B3282F52D21926A4D31A1D17F427B317CB7C801EB8667ACB99864D1EB44FBB465187EC9BE06016F1A9D2D7D5E67F5633690E9DBE6303AA8C433300DC9272E9B31A5E0A9DF2386DE979AA6CF859DA7B861FE989FAC406A9A7C088BD74962B577B882F05699F9D5C294E445F32555EA',1.79485058441224789617e+09);
CREATE TABLE entries (
	id TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	amount BIGINT NOT NULL, 
	run_id TEXT, 
	reference TEXT NOT NULL, 
	note TEXT NOT NULL, 
	at DOUBLE NOT NULL, 
	CONSTRAINT pk_entries PRIMARY KEY (id), 
	CONSTRAINT fk_entries_owner FOREIGN KEY(owner) REFERENCES namespaces (name), 
	CONSTRAINT uq_entries_reference UNIQUE (reference)
);
INSERT INTO "entries" VALUES('ent-5b0b6b3fd7','ada','grant',5000000,NULL,'grant:4445deca0e5b5c7ba0d9','welcome',1.79485058447981643678e+09);
INSERT INTO "entries" VALUES('ent-fbe6bb275a','ada','charge',-3,NULL,'calls:3706830ed58b84e6eaaa','',1.79485058450633358948e+09);
CREATE TABLE environments (
	id TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	name TEXT NOT NULL, 
	visibility TEXT NOT NULL, 
	description TEXT NOT NULL, 
	tags JSON NOT NULL, 
	forked_from TEXT, 
	created_at DOUBLE NOT NULL, 
	updated_at DOUBLE NOT NULL, 
	CONSTRAINT pk_environments PRIMARY KEY (id), 
	CONSTRAINT fk_environments_owner FOREIGN KEY(owner) REFERENCES namespaces (name), 
	CONSTRAINT uq_environments_owner_name UNIQUE (owner, name)
);
INSERT INTO "environments" VALUES('env-4ef467eb2e','ada','sums','public','Says hello.','["hello", "small"]',NULL,1.79485058443213796614e+09,1.79485058443767786029e+09);
CREATE TABLE events (
	run_id TEXT NOT NULL, 
	seq INTEGER NOT NULL, 
	event BLOB NOT NULL, 
	CONSTRAINT pk_events PRIMARY KEY (run_id, seq), 
	CONSTRAINT fk_events_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "events" VALUES('run-3ab7dcad12',1,X'7B22736571223A312C226174223A313739343835303538342E3531343639332C226B696E64223A22737461747573222C22737461747573223A2272756E6E696E67227D');
INSERT INTO "events" VALUES('run-3ab7dcad12',2,X'7B22736571223A322C226174223A312E302C226B696E64223A226C6F67222C226C6576656C223A22494E464F222C2274657874223A2268656C6C6F227D');
INSERT INTO "events" VALUES('run-3ab7dcad12',3,X'7B22736571223A332C226174223A313739343835303538342E353331303039342C226B696E64223A22726F6C6C6F7574222C22726F6C6C6F7574223A7B227461736B223A2231222C226E756D626572223A302C226F7574636F6D65223A2273636F726564222C22726577617264223A312E302C227365636F6E6473223A302E302C22696E7075745F746F6B656E73223A302C226F75747075745F746F6B656E73223A302C226572726F72223A22227D7D');
INSERT INTO "events" VALUES('run-3ab7dcad12',4,X'7B22736571223A342C226174223A313739343835303538342E353331303039342C226B696E64223A22726F6C6C6F7574222C22726F6C6C6F7574223A7B227461736B223A2274776F222C226E756D626572223A302C226F7574636F6D65223A226D6F64656C5F6572726F72222C22726577617264223A6E756C6C2C227365636F6E6473223A302E302C22696E7075745F746F6B656E73223A302C226F75747075745F746F6B656E73223A302C226572726F72223A224D6F64656C4572726F723A20227D7D');
INSERT INTO "events" VALUES('run-3ab7dcad12',5,X'7B22736571223A352C226174223A313739343835303538342E353331303039342C226B696E64223A2270726F6772657373222C2270726F6772657373223A7B22706C616E6E6564223A322C22736574746C6564223A312C2273636F726564223A312C226661696C6564223A312C226D65616E5F726577617264223A312E307D7D');
INSERT INTO "events" VALUES('run-3ab7dcad12',6,X'7B22736571223A362C226174223A313739343835303538342E3534323531362C226B696E64223A22737461747573222C22737461747573223A2266696E6973686564222C2270726F6772657373223A7B22706C616E6E6564223A6E756C6C2C22736574746C6564223A312C2273636F726564223A312C226661696C6564223A312C226D65616E5F726577617264223A312E307D7D');
INSERT INTO "events" VALUES('run-6e71ae1949',1,X'7B22736571223A312C226174223A313739343835303538342E353632313739332C226B696E64223A22737461747573222C22737461747573223A2270656E64696E67227D');
INSERT INTO "events" VALUES('run-6e71ae1949',2,X'7B22736571223A322C226174223A313739343835303538342E353638353137322C226B696E64223A226C6F67222C226C6576656C223A225741524E494E47222C2274657874223A224E6F20686F737420697320636F6E6E656374656420746F2074686973207365727665722C20736F207468652072756E2077616974732E20546865207365727665722773206F70657261746F722063616E207374617274206F6E652077697468206070726F63746F722072756E6E6572602C206F72207265737461727420746865207365727665722077697468202D2D72756E732D61742D6F6E63652061626F766520302E227D');
CREATE TABLE holds (
	run_id TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	amount BIGINT NOT NULL, 
	CONSTRAINT pk_holds PRIMARY KEY (run_id), 
	CONSTRAINT fk_holds_owner FOREIGN KEY(owner) REFERENCES namespaces (name), 
	CONSTRAINT fk_holds_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "holds" VALUES('run-6e71ae1949','ada',1000000);
CREATE TABLE members (
	team TEXT NOT NULL, 
	user TEXT NOT NULL, 
	role TEXT NOT NULL, 
	CONSTRAINT pk_members PRIMARY KEY (team, user), 
	CONSTRAINT fk_members_team FOREIGN KEY(team) REFERENCES teams (name) ON DELETE CASCADE, 
	CONSTRAINT fk_members_user FOREIGN KEY(user) REFERENCES users (name) ON DELETE CASCADE
);
INSERT INTO "members" VALUES('robots','ada','admin');
CREATE TABLE namespaces (
	name TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	CONSTRAINT pk_namespaces PRIMARY KEY (name)
);
INSERT INTO "namespaces" VALUES('root','user');
INSERT INTO "namespaces" VALUES('ada','user');
INSERT INTO "namespaces" VALUES('robots','team');
CREATE TABLE places (
	id TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	run_id TEXT, 
	server TEXT NOT NULL, 
	backend TEXT NOT NULL, 
	status TEXT NOT NULL, 
	message TEXT NOT NULL, 
	spec JSON NOT NULL, 
	created_at DOUBLE NOT NULL, 
	expires_at DOUBLE NOT NULL, 
	ended_at DOUBLE, 
	CONSTRAINT pk_places PRIMARY KEY (id), 
	CONSTRAINT fk_places_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "places" VALUES('box-1','sandbox','ada','run-6e71ae1949','server-1','bubblewrap','ended','It was deleted.','{}',1.0,2.0,1.5);
CREATE TABLE prices (
	model TEXT NOT NULL, 
	input DOUBLE NOT NULL, 
	output DOUBLE NOT NULL, 
	cached DOUBLE, 
	CONSTRAINT pk_prices PRIMARY KEY (model)
);
INSERT INTO "prices" VALUES('parrot',1.0,2.0,NULL);
CREATE TABLE reservations (
	id TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	run_id TEXT, 
	amount BIGINT NOT NULL, 
	holder TEXT NOT NULL, 
	expires_at DOUBLE NOT NULL, 
	CONSTRAINT pk_reservations PRIMARY KEY (id), 
	CONSTRAINT fk_reservations_owner FOREIGN KEY(owner) REFERENCES namespaces (name)
);
INSERT INTO "reservations" VALUES('res-1','ada','run-6e71ae1949',7,'server-1',1.0);
CREATE TABLE roles (
	environment_id TEXT NOT NULL, 
	holder TEXT NOT NULL, 
	role TEXT NOT NULL, 
	CONSTRAINT pk_roles PRIMARY KEY (environment_id, holder), 
	CONSTRAINT fk_roles_environment_id FOREIGN KEY(environment_id) REFERENCES environments (id) ON DELETE CASCADE, 
	CONSTRAINT fk_roles_holder FOREIGN KEY(holder) REFERENCES namespaces (name) ON DELETE CASCADE
);
INSERT INTO "roles" VALUES('env-4ef467eb2e','robots','read');
CREATE TABLE rollouts (
	run_id TEXT NOT NULL, 
	task TEXT NOT NULL, 
	number INTEGER NOT NULL, 
	place INTEGER NOT NULL, 
	settled BOOLEAN NOT NULL, 
	outcome TEXT NOT NULL, 
	reward DOUBLE, 
	seconds DOUBLE NOT NULL, 
	input_tokens BIGINT NOT NULL, 
	output_tokens BIGINT NOT NULL, 
	"row" BLOB NOT NULL, 
	CONSTRAINT pk_rollouts PRIMARY KEY (run_id, task, number), 
	CONSTRAINT fk_rollouts_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "rollouts" VALUES('run-3ab7dcad12','1',0,1,1,'scored',1.0,0.0,0,0,X'78011DCB410AC0200C44D1AB48D64574DBCB88686885484AB4B420DEBDB1BBF9F06600BEB15E84A164D88DDF0C0813F1DDB59C96AEC415B5A02516CCB0083E517E6F97A9D8A5A4A6668094E35C5F6FDD9C1F750F1CD7');
INSERT INTO "rollouts" VALUES('run-3ab7dcad12','"two"',0,2,0,'model_error',NULL,0.0,0,0,X'7801AB564AAD48CC2DC8498DCF4C51B252502A29CF57D251502ACACFC9C92F2D018A1800794056727E6E2A483E373F2535273EB5A828BF08A40EC2B052A886B3947C412A5CC10A6A6B01CE1A1F4F');
CREATE TABLE run_secrets (
	run_id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	sealed BLOB NOT NULL, 
	CONSTRAINT pk_run_secrets PRIMARY KEY (run_id, name), 
	CONSTRAINT fk_run_secrets_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "run_secrets" VALUES('run-6e71ae1949','OWN_KEY',X'0178049397C0DC53719524C4FF249CC9B6E96934283D643DBD64B7D63E3612A1F18BE5');
CREATE TABLE runs (
	id TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	name TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	team TEXT, 
	environment_id TEXT, 
	version_id TEXT, 
	environment TEXT NOT NULL, 
	version TEXT, 
	content_hash TEXT, 
	model TEXT NOT NULL, 
	client_run_id TEXT, 
	settings JSON NOT NULL, 
	permissions JSON NOT NULL, 
	timeout_minutes INTEGER, 
	max_cost BIGINT, 
	status TEXT NOT NULL, 
	cause JSON, 
	planned INTEGER, 
	attempt INTEGER NOT NULL, 
	crashes INTEGER NOT NULL, 
	rows_at_crash INTEGER NOT NULL, 
	host TEXT, 
	lease_until DOUBLE, 
	deadline_at DOUBLE, 
	last_batch INTEGER NOT NULL, 
	last_seq INTEGER NOT NULL, 
	settled INTEGER NOT NULL, 
	scored INTEGER NOT NULL, 
	failed INTEGER NOT NULL, 
	reward_sum DOUBLE NOT NULL, 
	cost BIGINT, 
	input_tokens BIGINT NOT NULL, 
	output_tokens BIGINT NOT NULL, 
	metadata JSON NOT NULL, 
	summary JSON, 
	created_at DOUBLE NOT NULL, 
	started_at DOUBLE, 
	ended_at DOUBLE, row_bytes BIGINT DEFAULT '0' NOT NULL, log_bytes BIGINT DEFAULT '0' NOT NULL, 
	CONSTRAINT pk_runs PRIMARY KEY (id), 
	CONSTRAINT fk_runs_environment_id FOREIGN KEY(environment_id) REFERENCES environments (id) ON DELETE SET NULL, 
	CONSTRAINT fk_runs_owner FOREIGN KEY(owner) REFERENCES users (name), 
	CONSTRAINT fk_runs_team FOREIGN KEY(team) REFERENCES teams (name), 
	CONSTRAINT fk_runs_version_id FOREIGN KEY(version_id) REFERENCES versions (id) ON DELETE SET NULL, 
	CONSTRAINT uq_runs_owner_client_run_id UNIQUE (owner, client_run_id)
);
INSERT INTO "runs" VALUES('run-3ab7dcad12','local','','ada',NULL,NULL,NULL,'sums',NULL,NULL,'m','local-1','{"seed": 7}','{}',NULL,NULL,'finished',NULL,NULL,0,0,0,NULL,NULL,NULL,1,6,1,1,1,1.0,NULL,0,0,'{"config": {"seed": 7}, "pass_threshold": 1.0}','{"tasks": 1, "rollouts_per_task": 1, "planned": null, "finished": 2, "scored": 1, "timed_out": 0, "coverage": null, "outcomes": {"scored": 1, "model_error": 1}, "reward": {"mean": 1.0, "se": null, "interval": null, "n": 1}, "bounds": {"low": 0.5, "high": 1.0}, "metrics": {"right": {"mean": 1.0, "se": null, "interval": null, "n": 1}}, "pass_threshold": 1.0, "pass_at_k": {}, "pass_hat_k": {}, "stop_conditions": {"none": 2}, "seconds": {"median": 0.0, "p90": 0.0, "longest": 0.0}, "usage": {}, "other_usage": {}, "cost_usd": null, "unpriced_models": ["m"], "errors": [{"outcome": "model_error", "kind": "ModelError", "count": 1, "sample": "", "task": "two", "rollout": 0, "phase": "", "location": ""}], "cleanup_errors": [], "retried": 0, "members": {}}',1.79485058451469302182e+09,1.79485058451469302182e+09,1.79485058454251599317e+09,1230,69);
INSERT INTO "runs" VALUES('run-6e71ae1949','hosted','nightly','ada',NULL,'env-4ef467eb2e','ver-148d963587','ada/sums','0.1.0','4639ddff9dd898a47b046be0dad1201993306f6c78ea5f15bc9560f46e064f41','parrot',NULL,'{}','{"sandboxes": false, "instances": false, "network": false}',120,1000000,'pending',NULL,NULL,0,0,0,NULL,NULL,NULL,0,2,0,0,0,0.0,NULL,0,0,'{}',NULL,1.79485058456217932707e+09,NULL,NULL,0,0);
CREATE TABLE seals (
	name TEXT NOT NULL, 
	sealed BLOB NOT NULL, 
	at DOUBLE NOT NULL, 
	CONSTRAINT pk_seals PRIMARY KEY (name)
);
INSERT INTO "seals" VALUES('proof',X'01A8274AF1112327F640096DAE8B0A5D9233BADA81522BD75BCB87F9A3ADCDA3E13B9924',1.79485058357629919051e+09);
CREATE TABLE secret_links (
	environment_id TEXT NOT NULL, 
	secret_id TEXT NOT NULL, 
	CONSTRAINT pk_secret_links PRIMARY KEY (environment_id, secret_id), 
	CONSTRAINT fk_secret_links_environment_id FOREIGN KEY(environment_id) REFERENCES environments (id) ON DELETE CASCADE, 
	CONSTRAINT fk_secret_links_secret_id FOREIGN KEY(secret_id) REFERENCES secrets (id) ON DELETE CASCADE
);
INSERT INTO "secret_links" VALUES('env-4ef467eb2e','sec-a82ca353be');
CREATE TABLE secrets (
	id TEXT NOT NULL, 
	owner TEXT, 
	environment_id TEXT, 
	name TEXT NOT NULL, 
	sealed BLOB NOT NULL, 
	description TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	updated_at DOUBLE NOT NULL, 
	CONSTRAINT pk_secrets PRIMARY KEY (id), 
	CONSTRAINT fk_secrets_environment_id FOREIGN KEY(environment_id) REFERENCES environments (id) ON DELETE CASCADE, 
	CONSTRAINT fk_secrets_owner FOREIGN KEY(owner) REFERENCES namespaces (name) ON DELETE CASCADE, 
	CONSTRAINT uq_secrets_environment_id_name UNIQUE (environment_id, name), 
	CONSTRAINT uq_secrets_owner_name UNIQUE (owner, name)
);
INSERT INTO "secrets" VALUES('sec-a82ca353be','ada',NULL,'SHARED_KEY',X'01271E6FC81B29FF720F5800B274BD00541BB23C7436C1266E621B022AC9D7FBE6E8','',1.79485058445125627516e+09,1.79485058445125627516e+09);
INSERT INTO "secrets" VALUES('sec-ca211dd9be',NULL,'env-4ef467eb2e','SUMS_KEY',X'01FE82B06EA1B4AAA68CD275B7CDEEBD72E95D54C9DF6A944D9AD9C0BC09489829B036EB3A','of the sums',1.79485058446326160427e+09,1.79485058446326160427e+09);
CREATE TABLE teams (
	id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	CONSTRAINT pk_teams PRIMARY KEY (id), 
	CONSTRAINT fk_teams_name FOREIGN KEY(name) REFERENCES namespaces (name), 
	CONSTRAINT uq_teams_name UNIQUE (name)
);
INSERT INTO "teams" VALUES('team-67fc149587','robots',1.79485058441111969946e+09);
CREATE TABLE tokens (
	id TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	secret_hash BLOB NOT NULL, 
	user TEXT, 
	run_id TEXT, 
	attempt INTEGER, 
	name TEXT NOT NULL, 
	scopes JSON NOT NULL, 
	created_at DOUBLE NOT NULL, 
	expires_at DOUBLE, 
	last_used_at DOUBLE, 
	revoked_at DOUBLE, host_key_hash BLOB, 
	CONSTRAINT pk_tokens PRIMARY KEY (id), 
	CONSTRAINT fk_tokens_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE, 
	CONSTRAINT fk_tokens_user FOREIGN KEY(user) REFERENCES users (name) ON DELETE CASCADE
);
INSERT INTO "tokens" VALUES('34a855fc62','first',X'F655BB2B85A6277147A2E4F55BC32643D340E352529B2CEE93AF749112004C3F','root',NULL,NULL,'first login','["environments:read", "environments:write", "runs:read", "runs:write", "secrets:write", "inference", "tokens:write", "admin"]',1.79485058360379219058e+09,NULL,1.79485058429222416875e+09,1.79485058429641723635e+09,NULL);
INSERT INTO "tokens" VALUES('55665e3e75','user',X'8A4A989B4705AC2EC541A077FA23C6C1B7DEBBC73F19ED1E5708B2CC36CC10BC','root',NULL,NULL,'','["environments:read", "environments:write", "runs:read", "runs:write", "secrets:write", "inference", "tokens:write", "admin"]',1.79485058429779076576e+09,1.80262658429775381088e+09,1.79485058440235829358e+09,NULL,NULL);
INSERT INTO "tokens" VALUES('b1ff8b823c','user',X'9EFD505DC862121A8A72C46F82AAC41ED0BD9EAB52DCD4CECD4176C8B3C7FD49','ada',NULL,NULL,'first','["environments:read", "environments:write", "runs:read", "runs:write", "secrets:write", "inference", "tokens:write"]',1.79485058440487074858e+09,1.80262658440460205077e+09,1.79485058440774345399e+09,NULL,NULL);
CREATE TABLE users (
	id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	is_admin BOOLEAN NOT NULL, 
	created_at DOUBLE NOT NULL, 
	disabled_at DOUBLE, 
	CONSTRAINT pk_users PRIMARY KEY (id), 
	CONSTRAINT fk_users_name FOREIGN KEY(name) REFERENCES namespaces (name), 
	CONSTRAINT uq_users_name UNIQUE (name)
);
INSERT INTO "users" VALUES('usr-ab4105c55f','root',1,1.79485058359645605085e+09,NULL);
INSERT INTO "users" VALUES('usr-f8737c863b','ada',0,1.79485058440460205075e+09,NULL);
CREATE TABLE variables (
	id TEXT NOT NULL, 
	environment_id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	value TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	updated_at DOUBLE NOT NULL, 
	CONSTRAINT pk_variables PRIMARY KEY (id), 
	CONSTRAINT fk_variables_environment_id FOREIGN KEY(environment_id) REFERENCES environments (id) ON DELETE CASCADE, 
	CONSTRAINT uq_variables_environment_id_name UNIQUE (environment_id, name)
);
INSERT INTO "variables" VALUES('var-2a7d1673fa','env-4ef467eb2e','REGION','north',1.79485058446742963794e+09,1.79485058446742963794e+09);
CREATE TABLE version_tasks (
	version_id TEXT NOT NULL, 
	place INTEGER NOT NULL, 
	slug TEXT NOT NULL, 
	task BLOB NOT NULL, 
	CONSTRAINT pk_version_tasks PRIMARY KEY (version_id, place), 
	CONSTRAINT fk_version_tasks_version_id FOREIGN KEY(version_id) REFERENCES versions (id) ON DELETE CASCADE
);
CREATE TABLE versions (
	id TEXT NOT NULL, 
	environment_id TEXT NOT NULL, 
	version TEXT NOT NULL, 
	number INTEGER NOT NULL, 
	content_hash TEXT NOT NULL, 
	wheel_name TEXT NOT NULL, 
	wheel_sha256 TEXT NOT NULL, 
	wheel_size BIGINT NOT NULL, 
	source_sha256 TEXT NOT NULL, 
	source_size BIGINT NOT NULL, 
	requires_python TEXT NOT NULL, 
	dependencies JSON NOT NULL, 
	secrets JSON NOT NULL, 
	files JSON NOT NULL, 
	metadata_text TEXT NOT NULL, 
	pushed_by TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	check_status TEXT NOT NULL, 
	check_message TEXT NOT NULL, 
	check_log TEXT NOT NULL, 
	check_tasks INTEGER, 
	check_seconds DOUBLE, 
	check_facts JSON NOT NULL, 
	check_lease_until DOUBLE, 
	check_host TEXT, 
	check_leases INTEGER NOT NULL, 
	lock TEXT, 
	CONSTRAINT pk_versions PRIMARY KEY (id), 
	CONSTRAINT fk_versions_environment_id FOREIGN KEY(environment_id) REFERENCES environments (id) ON DELETE CASCADE, 
	CONSTRAINT uq_versions_environment_id_version UNIQUE (environment_id, version)
);
INSERT INTO "versions" VALUES('ver-148d963587','env-4ef467eb2e','0.1.0',1,'4639ddff9dd898a47b046be0dad1201993306f6c78ea5f15bc9560f46e064f41','sums-0.1.0-py3-none-any.whl','ad4a10b5b16f0eba04b48e5b1d4dd592e3089093d943e483f83aab1a61991f3c',918,'eaf5d961b05865da55e0f7e1d143e9a61d82cf9eb35778e1d22c45df77ee5d40',217,'>=3.10','[]','[]','[["pyproject.toml", 42], ["sums.py", 60]]','Metadata-Version: 2.1
Name: sums
Version: 0.1.0
Summary: Says hello.
Requires-Python: >=3.10
Keywords: hello,small
','ada',1.79485058443621039395e+09,'pending','','',NULL,NULL,'{}',NULL,NULL,0,NULL);
CREATE INDEX ix_calls_owner ON calls (owner, at);
CREATE INDEX ix_calls_run_id ON calls (run_id);
CREATE INDEX ix_entries_owner ON entries (owner, at);
CREATE INDEX ix_runs_created_at ON runs (created_at, id);
CREATE INDEX ix_runs_environment_id ON runs (environment_id);
CREATE INDEX ix_runs_owner ON runs (owner, started_at);
CREATE INDEX ix_runs_status ON runs (status);
CREATE INDEX ix_holds_owner ON holds (owner);
CREATE INDEX ix_places_run_id ON places (run_id);
CREATE INDEX ix_rollouts_place ON rollouts (run_id, place);
CREATE INDEX ix_tokens_run_id ON tokens (run_id);
CREATE INDEX ix_tokens_user ON tokens (user);
CREATE INDEX ix_reservations_owner ON reservations (owner);
CREATE INDEX ix_reservations_holder ON reservations (holder);
COMMIT;
