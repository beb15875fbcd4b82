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
INSERT INTO "alembic_version" VALUES('0007');
CREATE TABLE attempt_secrets (
	run_id TEXT NOT NULL, 
	attempt INTEGER NOT NULL, 
	sealed BLOB NOT NULL, 
	CONSTRAINT pk_attempt_secrets PRIMARY KEY (run_id, attempt), 
	CONSTRAINT fk_attempt_secrets_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "attempt_secrets" VALUES('run-722ee3d109',1,X'7365616C6564');
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
INSERT INTO "calls" VALUES('2c15d98a73abd865de21',1794851473.39205,'ada','ada',NULL,'parrot','scripted',1,1,0,3,0);
CREATE TABLE commit_marks (
	id TEXT NOT NULL, 
	number BIGINT NOT NULL, 
	at DOUBLE NOT NULL, 
	CONSTRAINT pk_commit_marks PRIMARY KEY (id)
);
INSERT INTO "commit_marks" VALUES('connection-1',1,1.0);
CREATE TABLE "creations" (
	caller TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	response BLOB NOT NULL, 
	at DOUBLE NOT NULL, 
	CONSTRAINT pk_creations PRIMARY KEY (caller, "key")
);
INSERT INTO "creations" VALUES('b7b6ab2fe7','robots',X'0104C62E47C213B493224D3C5B0A7B174B2564533C6CFB88D0B6C6123928C41DF07DD3EC39573C5538E7E40B0E697B5A78757975C62BCBE90D6C48CA31776F5AB84DCE12FB3B81137D10A171F7E9EF7EB717029016CF5C006ACDEA2E3E5740DE3A7DAECC7E01B136841DAEB84F52DC858E6386E21E5DD5BEC29D0E85362FE1E6E0B0C8E1A4',1.79485147327786302567e+09);
CREATE TABLE dataset_versions (
	id TEXT NOT NULL, 
	dataset_id TEXT NOT NULL, 
	number INTEGER NOT NULL, 
	sha256 TEXT NOT NULL, 
	size BIGINT NOT NULL, 
	format TEXT NOT NULL, 
	rows BIGINT, 
	columns JSON NOT NULL, 
	pushed_by TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	pushed_at DOUBLE NOT NULL, 
	CONSTRAINT pk_dataset_versions PRIMARY KEY (id), 
	CONSTRAINT fk_dataset_versions_dataset_id FOREIGN KEY(dataset_id) REFERENCES datasets (id) ON DELETE CASCADE, 
	CONSTRAINT uq_dataset_versions_dataset_id_sha256 UNIQUE (dataset_id, sha256)
);
INSERT INTO "dataset_versions" VALUES('content-1','data-1',1,'0000000000000000000000000000000000000000000000000000000000000000',1,'jsonl',1,'["user_prompt"]','ada',1.0,1.0);
CREATE TABLE datasets (
	id TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	name TEXT NOT NULL, 
	visibility TEXT NOT NULL, 
	description TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	updated_at DOUBLE NOT NULL, 
	CONSTRAINT pk_datasets PRIMARY KEY (id), 
	CONSTRAINT fk_datasets_owner FOREIGN KEY(owner) REFERENCES namespaces (name), 
	CONSTRAINT uq_datasets_owner_name UNIQUE (owner, name)
);
INSERT INTO "datasets" VALUES('data-1','ada','sums','private','',1.0,1.0);
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
INSERT INTO "entries" VALUES('ent-2b6a7e0ac6','ada','grant',5000000,NULL,'grant:c6bc84a1823d9bd7eebd','welcome',1.79485147338066196439e+09);
INSERT INTO "entries" VALUES('ent-0fe372b816','ada','charge',-3,NULL,'calls:2c15d98a73abd865de21','',1.79485147340758490561e+09);
CREATE TABLE environments (
	id TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	name TEXT NOT NULL, 
	visibility TEXT NOT NULL, 
	description TEXT NOT NULL, 
	tags JSON NOT NULL, 
	forked_from TEXT, 
	created_at DOUBLE NOT NULL, 
	updated_at DOUBLE NOT NULL, run_policy TEXT, 
	CONSTRAINT pk_environments PRIMARY KEY (id), 
	CONSTRAINT fk_environments_owner FOREIGN KEY(owner) REFERENCES namespaces (name), 
	CONSTRAINT uq_environments_owner_name UNIQUE (owner, name)
);
INSERT INTO "environments" VALUES('env-d052c86179','ada','sums','public','Says hello.','["hello", "small"]',NULL,1.79485147332764291769e+09,1.79485147333718442911e+09,NULL);
CREATE TABLE events (
	run_id TEXT NOT NULL, 
	seq INTEGER NOT NULL, 
	event BLOB NOT NULL, 
	CONSTRAINT pk_events PRIMARY KEY (run_id, seq), 
	CONSTRAINT fk_events_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "events" VALUES('run-8471b7f29f',1,X'7B22736571223A312C226174223A313739343835313437332E343137373631332C226B696E64223A22737461747573222C22737461747573223A2272756E6E696E67227D');
INSERT INTO "events" VALUES('run-8471b7f29f',2,X'7B22736571223A322C226174223A312E302C226B696E64223A226C6F67222C226C6576656C223A22494E464F222C2274657874223A2268656C6C6F227D');
INSERT INTO "events" VALUES('run-8471b7f29f',3,X'7B22736571223A332C226174223A313739343835313437332E343338333734332C226B696E64223A22726F6C6C6F7574222C22726F6C6C6F7574223A7B227461736B223A2231222C226E756D626572223A302C226F7574636F6D65223A2273636F726564222C22726577617264223A312E302C227365636F6E6473223A302E302C22696E7075745F746F6B656E73223A302C226F75747075745F746F6B656E73223A302C226572726F72223A22227D7D');
INSERT INTO "events" VALUES('run-8471b7f29f',4,X'7B22736571223A342C226174223A313739343835313437332E343338333734332C226B696E64223A22726F6C6C6F7574222C22726F6C6C6F7574223A7B227461736B223A2274776F222C226E756D626572223A302C226F7574636F6D65223A226D6F64656C5F6572726F72222C22726577617264223A6E756C6C2C227365636F6E6473223A302E302C22696E7075745F746F6B656E73223A302C226F75747075745F746F6B656E73223A302C226572726F72223A224D6F64656C4572726F723A20227D7D');
INSERT INTO "events" VALUES('run-8471b7f29f',5,X'7B22736571223A352C226174223A313739343835313437332E343338333734332C226B696E64223A2270726F6772657373222C2270726F6772657373223A7B22706C616E6E6564223A322C22736574746C6564223A312C2273636F726564223A312C226661696C6564223A312C226D65616E5F726577617264223A312E307D7D');
INSERT INTO "events" VALUES('run-8471b7f29f',6,X'7B22736571223A362C226174223A313739343835313437332E343730323034362C226B696E64223A22737461747573222C22737461747573223A2266696E6973686564222C2270726F6772657373223A7B22706C616E6E6564223A6E756C6C2C22736574746C6564223A312C2273636F726564223A312C226661696C6564223A312C226D65616E5F726577617264223A312E307D7D');
INSERT INTO "events" VALUES('run-722ee3d109',1,X'7B22736571223A312C226174223A313739343835313437332E3439303537382C226B696E64223A22737461747573222C22737461747573223A2270656E64696E67227D');
INSERT INTO "events" VALUES('run-722ee3d109',2,X'7B22736571223A322C226174223A313739343835313437332E353031333430342C226B696E64223A226C6F67222C226C6576656C223A225741524E494E47222C2274657874223A224E6F20686F737420697320636F6E6E656374656420746F2074686973207365727665722C20736F207468652072756E2077616974732E20546865207365727665722773206F70657261746F722063616E207374617274206F6E652077697468206070726F63746F722072756E6E6572602C206F72207265737461727420746865207365727665722077697468202D2D72756E732D61742D6F6E63652061626F766520302E227D');
CREATE TABLE holds (
	run_id TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	amount BIGINT NOT NULL, 
	CONSTRAINT pk_holds PRIMARY KEY (run_id), 
	CONSTRAINT fk_holds_owner FOREIGN KEY(owner) REFERENCES namespaces (name), 
	CONSTRAINT fk_holds_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "holds" VALUES('run-722ee3d109','ada',1000000);
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
INSERT INTO "places" VALUES('box-1','sandbox','ada','run-722ee3d109','server-1','bubblewrap','ended','It was deleted.','{}',1.0,2.0,1.5);
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
INSERT INTO "reservations" VALUES('res-1','ada','run-722ee3d109',7,'server-1',1.0);
CREATE TABLE roles (
	environment_id TEXT NOT NULL, 
	holder TEXT NOT NULL, 
	role TEXT NOT NULL, 
	CONSTRAINT pk_roles PRIMARY KEY (environment_id, holder), 
	CONSTRAINT fk_roles_environment_id FOREIGN KEY(environment_id) REFERENCES environments (id) ON DELETE CASCADE, 
	CONSTRAINT fk_roles_holder FOREIGN KEY(holder) REFERENCES namespaces (name) ON DELETE CASCADE
);
INSERT INTO "roles" VALUES('env-d052c86179','robots','read');
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
INSERT INTO "rollouts" VALUES('run-8471b7f29f','1',0,1,1,'scored',1.0,0.0,0,0,X'78011DCB410AC0200C44D1AB48D64574DBCB88686885484AB4B420DEBDB1BBF9F06600BEB15E84A164D88DDF0C0813F1DDB59C96AEC415B5A02516CCB0083E517E6F97A9D8A5A4A6668094E35C5F6FDD9C1F750F1CD7');
INSERT INTO "rollouts" VALUES('run-8471b7f29f','"two"',0,2,0,'model_error',NULL,0.0,0,0,X'7801AB564AAD48CC2DC8498DCF4C51B252502A29CF57D251502ACACFC9C92F2D018A1800794056727E6E2A483E373F2535273EB5A828BF08A40EC2B052A886B3947C412A5CC10A6A6B01CE1A1F4F');
CREATE TABLE run_datasets (
	run_id TEXT NOT NULL, 
	version_id TEXT NOT NULL, 
	CONSTRAINT pk_run_datasets PRIMARY KEY (run_id, version_id), 
	CONSTRAINT fk_run_datasets_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE, 
	CONSTRAINT fk_run_datasets_version_id FOREIGN KEY(version_id) REFERENCES dataset_versions (id) ON DELETE CASCADE
);
INSERT INTO "run_datasets" VALUES('run-722ee3d109','content-1');
CREATE TABLE run_links (
	run_id TEXT NOT NULL, 
	link_hash BLOB NOT NULL, 
	sealed BLOB NOT NULL, 
	created_at DOUBLE NOT NULL, 
	CONSTRAINT pk_run_links PRIMARY KEY (run_id), 
	CONSTRAINT fk_run_links_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "run_links" VALUES('run-722ee3d109',X'68617368',X'7365616C6564',1.0);
CREATE TABLE run_secrets (
	run_id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	sealed BLOB NOT NULL, 
	CONSTRAINT pk_run_secrets PRIMARY KEY (run_id, name), 
	CONSTRAINT fk_run_secrets_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "run_secrets" VALUES('run-722ee3d109','OWN_KEY',X'01B3F443E89934C0F6B00DF53CF632E76DCE8F3C17058EF622F414E92D88A08E452717');
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
	ended_at DOUBLE, row_bytes BIGINT DEFAULT '0' NOT NULL, log_bytes BIGINT DEFAULT '0' NOT NULL, visibility TEXT DEFAULT 'private' NOT NULL, 
	CONSTRAINT pk_runs PRIMARY KEY (id), 
	CONSTRAINT fk_runs_environment_id FOREIGN KEY(environment_id) REFERENCES environments (id) ON DELETE SET NULL, 
	CONSTRAINT fk_runs_owner FOREIGN KEY(owner) REFERENCES users (name), 
	CONSTRAINT fk_runs_team FOREIGN KEY(team) REFERENCES teams (name), 
	CONSTRAINT fk_runs_version_id FOREIGN KEY(version_id) REFERENCES versions (id) ON DELETE SET NULL, 
	CONSTRAINT uq_runs_owner_client_run_id UNIQUE (owner, client_run_id)
);
INSERT INTO "runs" VALUES('run-8471b7f29f','local','','ada',NULL,NULL,NULL,'sums',NULL,NULL,'m','local-1','{"seed": 7}','{}',NULL,NULL,'finished',NULL,NULL,0,0,0,NULL,NULL,NULL,1,6,1,1,1,1.0,NULL,0,0,'{"config": {"seed": 7}, "pass_threshold": 1.0}','{"tasks": 1, "rollouts_per_task": 1, "planned": null, "finished": 2, "scored": 1, "timed_out": 0, "coverage": null, "outcomes": {"scored": 1, "model_error": 1}, "reward": {"mean": 1.0, "se": null, "interval": null, "n": 1}, "bounds": {"low": 0.5, "high": 1.0}, "metrics": {"right": {"mean": 1.0, "se": null, "interval": null, "n": 1}}, "pass_threshold": 1.0, "scores": {"attempts": 2, "graded": 1, "passed": 1, "failed": 1, "skipped": 0, "pass_rate": 0.5, "reward_over_graded": 1.0, "reward_over_all": 0.5}, "pass_at_k": {}, "pass_hat_k": {}, "stop_conditions": {"none": 2}, "seconds": {"median": 0.0, "p90": 0.0, "longest": 0.0}, "usage": {}, "other_usage": {}, "cost_usd": null, "unpriced_models": ["m"], "errors": [{"outcome": "model_error", "kind": "ModelError", "count": 1, "sample": "", "task": "two", "rollout": 0, "phase": "", "location": ""}], "cleanup_errors": [], "retried": 0, "members": {}}',1.79485147341776132582e+09,1.79485147341776132582e+09,1.7948514734702045917e+09,1230,69,'private');
INSERT INTO "runs" VALUES('run-722ee3d109','hosted','nightly','ada',NULL,'env-d052c86179','ver-6369056de0','ada/sums','0.1.0','4639ddff9dd898a47b046be0dad1201993306f6c78ea5f15bc9560f46e064f41','parrot',NULL,'{}','{"sandboxes": false, "instances": false, "network": false}',120,1000000,'pending',NULL,NULL,0,0,0,NULL,NULL,NULL,0,2,0,0,0,0.0,NULL,0,0,'{}',NULL,1.79485147349057793612e+09,NULL,NULL,0,0,'private');
CREATE TABLE seals (
	name TEXT NOT NULL, 
	sealed BLOB NOT NULL, 
	at DOUBLE NOT NULL, 
	CONSTRAINT pk_seals PRIMARY KEY (name)
);
INSERT INTO "seals" VALUES('proof',X'01A9D975362880AED91AC0DB80C58B90A8BBD39FBE297FAB12A16C5C042461FF0448284E',1.79485147246569776537e+09);
CREATE TABLE secret_links (
	environment_id TEXT NOT NULL, 
	secret_id TEXT NOT NULL, 
	CONSTRAINT pk_secret_links PRIMARY KEY (environment_id, secret_id), 
	CONSTRAINT fk_secret_links_environment_id FOREIGN KEY(environment_id) REFERENCES environments (id) ON DELETE CASCADE, 
	CONSTRAINT fk_secret_links_secret_id FOREIGN KEY(secret_id) REFERENCES secrets (id) ON DELETE CASCADE
);
INSERT INTO "secret_links" VALUES('env-d052c86179','sec-049a65af4d');
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
INSERT INTO "secrets" VALUES('sec-049a65af4d','ada',NULL,'SHARED_KEY',X'0189885D2CB1E05042DCB079CCE199377B128A589B2F485B9A7193122B6E4FDE3526','',1.79485147335304164885e+09,1.79485147335304164885e+09);
INSERT INTO "secrets" VALUES('sec-5cdf82ce22',NULL,'env-d052c86179','SUMS_KEY',X'017D0C0576FB3FDCD036E405759467708546206B1A9463EBE06F422BF9BC03079686E5A29E','of the sums',1.7948514733663380146e+09,1.7948514733663380146e+09);
CREATE TABLE server_settings (
	name TEXT NOT NULL, 
	value TEXT NOT NULL, 
	CONSTRAINT pk_server_settings PRIMARY KEY (name)
);
INSERT INTO "server_settings" VALUES('run_policy','readers');
CREATE TABLE teams (
	id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	CONSTRAINT pk_teams PRIMARY KEY (id), 
	CONSTRAINT fk_teams_name FOREIGN KEY(name) REFERENCES namespaces (name), 
	CONSTRAINT uq_teams_name UNIQUE (name)
);
INSERT INTO "teams" VALUES('team-a312d43deb','robots',1.79485147327695918084e+09);
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
INSERT INTO "tokens" VALUES('6465c2247c','first',X'15E72D3C43941DD62579E6D8D4DA811A555517B73B2BBDC73F73BF273B629833','root',NULL,NULL,'first login','["environments:read", "environments:write", "runs:read", "runs:write", "secrets:write", "inference", "tokens:write", "admin"]',1.79485147248654413219e+09,NULL,1.79485147324198794369e+09,1.79485147325291585925e+09,NULL);
INSERT INTO "tokens" VALUES('7dabcc9b71','user',X'FD6EF1DB35A81E02B2CDF58DA403B8B26E01A4BDCD17B7A7C364C5C8D0D08D38','root',NULL,NULL,'','["environments:read", "environments:write", "runs:read", "runs:write", "secrets:write", "inference", "tokens:write", "admin"]',1794851473.25423,1.80262747325404500964e+09,1.794851473261904478e+09,NULL,NULL);
INSERT INTO "tokens" VALUES('b7b6ab2fe7','user',X'E4459A15589C04BA7A0BA771195D6A1F7DF8572F9A298BCF301E379CD28DA6AA','ada',NULL,NULL,'first','["environments:read", "environments:write", "runs:read", "runs:write", "secrets:write", "inference", "tokens:write"]',1.79485147326788377765e+09,1.80262747326767778389e+09,1.79485147327123141288e+09,NULL,NULL);
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
INSERT INTO "users" VALUES('usr-3f874af552','root',1,1.79485147248108577733e+09,NULL);
INSERT INTO "users" VALUES('usr-597343b712','ada',0,1.79485147326767778401e+09,NULL);
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
INSERT INTO "variables" VALUES('var-39451cb97b','env-d052c86179','REGION','north',1.79485147337093091011e+09,1.79485147337093091011e+09);
CREATE TABLE version_tasks (
	version_id TEXT NOT NULL, 
	place INTEGER NOT NULL, 
	slug TEXT NOT NULL, 
	task BLOB NOT NULL, 
	CONSTRAINT pk_version_tasks PRIMARY KEY (version_id, place), 
	CONSTRAINT fk_version_tasks_version_id FOREIGN KEY(version_id) REFERENCES versions (id) ON DELETE CASCADE
);
INSERT INTO "version_tasks" VALUES('ver-6369056de0',0,'sum',X'7B7D');
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
INSERT INTO "versions" VALUES('ver-6369056de0','env-d052c86179','0.1.0',1,'4639ddff9dd898a47b046be0dad1201993306f6c78ea5f15bc9560f46e064f41','sums-0.1.0-py3-none-any.whl','fff45fcf55a59e9cedae6b51b60c2b56801dce5e6dc2233c42d74f7fa225d3b4',918,'eaf5d961b05865da55e0f7e1d143e9a61d82cf9eb35778e1d22c45df77ee5d40',217,'>=3.10','[]','[]','[["pyproject.toml", 42], ["sums.py", 60]]','Metadata-Version: 2.1
Name: sums
Version: 0.1.0
Summary: Says hello.
Requires-Python: >=3.10
Keywords: hello,small
','ada',1.79485147333572077755e+09,'pending','','',NULL,NULL,'{}',NULL,NULL,0,NULL);
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
CREATE INDEX ix_dataset_versions_pushed_by ON dataset_versions (pushed_by);
CREATE INDEX ix_dataset_versions_sha256 ON dataset_versions (sha256);
CREATE INDEX ix_run_datasets_version_id ON run_datasets (version_id);
COMMIT;
